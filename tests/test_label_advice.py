"""What the labelling page advises: what to label next, how accurate the predictions are, and why they are so."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
import torch

from team.labelling.audit import accuracy, draw_sample, exact_interval
from team.labelling.explain import Explainer
from team.labelling.predict import predict
from team.labelling.session import Audit
from team.labelling.suggest import Suggester
from team.seeding import generator


def clusters(sizes: list[int], seed: int = 0, spread: float = 1.2) -> tuple[torch.Tensor, np.ndarray]:
    random = torch.Generator().manual_seed(seed)
    truth = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    centres = spread * torch.randn(len(sizes), 32, generator=random)
    return centres[truth] + torch.randn(len(truth), 32, generator=random), truth.numpy()


SIZES = [5, 9, 14, 20, 30, 40, 60, 80, 120, 150]


def test_first_suggestions_meet_more_classes_than_chance() -> None:
    found, chance = [], []
    for seed in range(5):
        points, truth = clusters(SIZES, seed)
        first = Suggester(points).suggest(np.zeros(len(truth), bool), None, 10)
        assert len(set(first)) == 10
        found.append(len(set(truth[first])))
        draws = np.random.default_rng(seed)
        chance += [len(set(truth[draws.choice(len(truth), 10, replace=False)])) for _ in range(20)]
    assert np.mean(found) > np.mean(chance) + 1


def test_following_suggestions_beats_labelling_at_random() -> None:
    points, truth = clusters(SIZES)
    suggester, draws = Suggester(points), np.random.default_rng(0)

    def run(choose: object) -> float:
        labels, probabilities = np.full(len(truth), -1), None
        for _ in range(5):
            picks = choose(labels >= 0, probabilities)  # type: ignore[operator]
            labels[picks] = truth[picks]
            probabilities = predict(points.numpy(), labels, len(SIZES))
        free = labels < 0
        return float((probabilities[free].argmax(1) == truth[free]).mean())

    ours = run(lambda labelled, probabilities: suggester.suggest(labelled, probabilities, 5))
    chance = [run(lambda labelled, _: draws.choice(np.flatnonzero(~labelled), 5, replace=False)) for _ in range(8)]
    assert ours > np.mean(chance) + 0.03


def test_nothing_labelled_is_suggested_and_the_last_image_is() -> None:
    points, truth = clusters([4, 4])
    labelled = np.ones(len(truth), bool)
    suggester = Suggester(points)
    assert suggester.suggest(labelled, None) == []
    labelled[3] = False
    assert suggester.suggest(labelled, np.full((8, 2), 0.5, np.float32)) == [3]
    same = Suggester(torch.zeros(6, 3))  # all images alike, as copies of one are
    assert sorted(same.suggest(np.zeros(6, bool), None)) == list(range(6))


# Accuracy.


def tail(correct: range, checked: int, total: int, population: int) -> Fraction:
    ways = sum(comb(total, right) * comb(population - total, checked - right) for right in correct)
    return Fraction(ways, comb(population, checked))


@pytest.mark.parametrize(
    ("correct", "checked", "population"), [(0, 5, 12), (3, 5, 12), (5, 5, 12), (7, 9, 60), (1, 1, 1)]
)
def test_the_interval_holds_the_shares_that_no_tail_rules_out(correct: int, checked: int, population: int) -> None:
    """Against the definition, in exact fractions."""
    rest = population - (checked - correct)
    possible = [
        total
        for total in range(correct, rest + 1)
        if tail(range(correct, checked + 1), checked, total, population) > Fraction(1, 40)
        and tail(range(correct + 1), checked, total, population) > Fraction(1, 40)
    ]
    expected = (possible[0] / population, possible[-1] / population)
    assert exact_interval(correct, checked, population) == pytest.approx(expected)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99, 1.0])
def test_the_interval_covers_the_truth_at_least_as_often_as_it_says(share: float) -> None:
    population, checked = 300, 40
    right = round(share * population)
    covered = Fraction(0)
    for correct in range(max(0, checked - population + right), min(checked, right) + 1):
        low, high = exact_interval(correct, checked, population)
        if low <= right / population <= high:
            covered += tail(range(correct, correct + 1), checked, right, population)
    assert covered >= 0.95


def test_accuracy_counts_answers_against_what_was_predicted_at_the_start() -> None:
    audit = Audit(100, {"a": 1, "b": 2, "c": 1}, {})
    assert accuracy(audit) is None
    found = accuracy(Audit(100, audit.predicted, {"a": 1, "b": 1}))
    assert found is not None
    assert (found.correct, found.checked, found.estimate) == (1, 2, 0.5)
    assert found.low < 0.5 < found.high


def test_the_sample_is_random_without_replacement_and_repeatable() -> None:
    paths = [f"{number}" for number in range(100)]
    first = draw_sample(paths, 40, generator(0, "audit", 3))
    assert first == draw_sample(paths, 40, generator(0, "audit", 3))
    assert len(set(first)) == 40
    assert first != sorted(first)
    assert draw_sample(paths[:3], 40, generator(0, "audit", 3)) != []


# Explanations.


def test_an_explanation_agrees_with_counting_by_hand() -> None:
    points, truth = clusters([6, 6, 6], spread=2.0)
    labels = np.full(len(truth), -1)
    labels[[0, 6, 12, 13]] = [10, 20, 30, 30]
    found = Explainer(points.numpy()).explain(1, labels)
    unit = torch.nn.functional.normalize(points - points.mean(0), dim=1).numpy()
    similar = {other: float(unit[1] @ unit[other]) for other in (0, 6, 12, 13)}
    assert [each.item for each in found.neighbours] == sorted(similar, key=lambda other: -similar[other])
    assert found.directions[0].label == 10
    assert found.directions[0].to_class == 1
    free = [item for item in range(18) if labels[item] < 0]
    nearer = sum(unit[item] @ unit[0] > unit[1] @ unit[0] + 1e-6 for item in free)
    assert found.directions[0].to_image == 1 + nearer
    assert found.unlabelled == len(free)


def test_a_labelled_image_is_explained_without_itself() -> None:
    points, _ = clusters([4, 4])
    found = Explainer(points.numpy()).explain(0, np.array([1, -1, -1, -1, 2, -1, -1, -1]))
    assert [each.item for each in found.neighbours] == [4]
    assert [each.label for each in found.directions] == [2]
    assert Explainer(points.numpy()).explain(0, np.full(8, -1)).neighbours == []
