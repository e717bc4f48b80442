"""Claims about evaluation: right accuracies, the same episodes for everyone, and batch normalisation as asked for."""

from __future__ import annotations

import copy
import importlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from conftest import tiny_images
from torch import Tensor, nn

from team import create_backbone, create_method, evaluate
from team.data.augment import normalise
from team.data.sampler import EpisodeSampler
from team.episode import Episode
from team.evaluation import Evaluation, by_class, embed, episode_statistics, evaluate_images
from team.evaluation.calibration import Calibration
from team.methods import ProtoNet
from team.seeding import generator

SMALL: dict[str, Any] = {"ways": 3, "shots": 1, "queries": 3, "episodes": 40}


def clouds(spread: float, classes: int = 7, each: int = 20, width: int = 12) -> dict[str, Tensor]:
    """Classes around unit vectors, each of its own size, scattered by ``spread``."""
    random = torch.Generator().manual_seed(0)
    return {
        f"class {number}": torch.eye(classes, width)[number]
        + spread * torch.randn(each + number, width, generator=random)
        for number in range(classes)
    }


class Watching(ProtoNet):
    """Keeps the episodes it was asked about."""

    def __init__(self, answer: Callable[[Episode], Tensor] | None = None) -> None:
        super().__init__()
        self.answer = answer
        self.episodes: list[tuple[Tensor, Tensor]] = []
        self.batches: list[int] = []

    def log_probabilities(self, episode: Episode) -> Tensor:
        self.batches.append(len(episode.support))
        self.episodes += zip(episode.support, episode.query, strict=True)
        return super().log_probabilities(episode) if self.answer is None else self.answer(episode)


# --- from features ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["protonet", "team"])
@pytest.mark.parametrize("shots", [1, 5])
def test_classes_far_apart_are_told_apart_always(name: str, shots: int) -> None:
    result = evaluate(create_method(name), clouds(1e-3), shots=shots, queries=10, episodes=50)
    assert (result.mean, result.ci95) == (100.0, 0.0)


@pytest.mark.parametrize("name", ["protonet", "team"])
def test_features_that_say_nothing_give_one_in_five(name: str) -> None:
    random = torch.Generator().manual_seed(0)
    features = {label: torch.randn(200, 16, generator=random) for label in range(20)}
    result = evaluate(create_method(name), features, episodes=400)
    assert abs(result.mean - 20) < 4 * result.ci95 / 1.96
    assert 0 < result.ci95 < 1.5


def test_accuracy_is_the_share_of_right_queries_in_each_episode() -> None:
    def always_the_second(episode: Episode) -> Tensor:
        return torch.tensor([0.0, 1.0, 0.0]).expand(*episode.query.shape[:2], 3)

    result = evaluate(Watching(always_the_second), clouds(0.1), **SMALL)
    torch.testing.assert_close(result.accuracies, torch.full((40,), 100 / 3, dtype=torch.float64))


def test_mean_and_interval_are_the_textbooks() -> None:
    result = evaluate(create_method("protonet"), clouds(0.6), **SMALL)
    accuracies = result.accuracies.numpy()
    assert accuracies.shape == (40,)
    assert result.mean == pytest.approx(accuracies.mean())
    assert result.ci95 == pytest.approx(1.96 * accuracies.std(ddof=1) / np.sqrt(40))
    assert str(result) == f"{accuracies.mean():.2f} ± {result.ci95:.2f} %"
    assert (result.ways, result.shots, result.queries, result.seed, result.sampling) == (3, 1, 3, 0, "balanced")
    assert np.isnan(Evaluation(result.accuracies[:1], 3, 1, 3, 0, "balanced").ci95), "one episode has no interval"


def test_the_size_of_a_batch_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("team.evaluation.evaluate")
    results, batches = [], []
    for size in (1, 20_000, 1 << 27):
        monkeypatch.setattr(module, "_BATCH_BYTES", size)
        method = Watching()
        results.append(evaluate(method, clouds(0.5), **SMALL | {"episodes": 300}))
        batches.append(method.batches)
    assert set(batches[0]) == {1}
    assert 1 < max(batches[1]) < max(batches[2]) == 256
    for result in results[1:]:
        assert torch.equal(result.accuracies, results[0].accuracies)


def test_two_methods_see_the_same_episodes() -> None:
    first, second = Watching(), Watching(lambda episode: -episode.query[..., :3])
    evaluate(first, clouds(0.5), **SMALL)
    evaluate(second, clouds(0.5), **SMALL)
    for ours, theirs in zip(first.episodes, second.episodes, strict=True):
        assert torch.equal(ours[0], theirs[0])
        assert torch.equal(ours[1], theirs[1])


def test_the_seed_decides_the_episodes_and_more_episodes_begin_with_the_same() -> None:
    def accuracies(**changes: Any) -> Tensor:
        return evaluate(create_method("team"), clouds(0.6), **SMALL | changes).accuracies

    assert torch.equal(accuracies(), accuracies())
    assert not torch.equal(accuracies(), accuracies(seed=1))
    assert torch.equal(accuracies(episodes=300)[:256], accuracies(episodes=256))


def test_support_and_queries_come_from_the_classes_they_stand_for() -> None:
    features = {name: torch.full((9, 4), float(name)) for name in range(6)}
    method = Watching()
    result = evaluate(method, features, ways=3, shots=2, queries=4, episodes=30)
    assert result.mean == 100
    for support, query in method.episodes:
        assert torch.equal(support[:, 0].reshape(3, 2)[:, :1].expand(3, 4), query[:, 0].reshape(3, 4))


@pytest.mark.parametrize("sampling", ["balanced", "dirichlet", "uniform"])
@pytest.mark.parametrize("present", [None, 2])
def test_every_sampling_counts_its_own_labels(sampling: str, present: int | None) -> None:
    features = {name: torch.full((90, 4), float(name)) for name in range(6)}
    method = Watching()
    result = evaluate(method, features, ways=3, queries=20, episodes=30, sampling=sampling, present=present)
    assert (result.mean, result.calibration_error < 40) == (100, True)
    assert (result.sampling, result.present) == (sampling, present)
    assert result.concentration == (2.0 if sampling == "dirichlet" else None)
    counts = torch.tensor([[(query[:, 0] == one).sum() for one in support[:, 0]] for support, query in method.episodes])
    assert (counts.sum(1) == 60).all()
    assert ((counts > 0).sum(1) <= (present or 3)).all()
    assert (counts.unique().tolist() in ([20], [0, 30])) == (sampling == "balanced")


def test_calibration_error_is_the_distance_of_confidence_from_accuracy() -> None:
    def sure_of_the_second(episode: Episode) -> Tensor:
        return torch.tensor([0.1, 0.8, 0.1]).log().expand(*episode.query.shape[:2], 3)

    result = evaluate(Watching(sure_of_the_second), clouds(0.1), **SMALL)
    assert result.calibration_error == pytest.approx(80 - 100 / 3)


def test_calibration_error_is_the_textbooks_whatever_comes_together() -> None:
    random = np.random.default_rng(0)
    confidence = np.concatenate([random.random(500), [0.0, 1.0, 1 / 15, 2 / 15]])
    right = random.random(len(confidence)) < confidence**2
    expected, edges = 0.0, np.linspace(0, 1, 16)
    for number, (low, high) in enumerate(itertools.pairwise(edges)):
        inside = (confidence > low) & (confidence <= high) | ((number == 0) & (confidence == 0))
        if inside.any():
            expected += 100 * inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    calibration = Calibration()
    for part in np.array_split(np.arange(len(confidence)), 3):
        calibration.add(torch.from_numpy(confidence[part]), torch.from_numpy(right[part]))
    assert calibration.error() == pytest.approx(expected)


def test_answers_that_are_not_numbers_are_an_error_and_not_an_accuracy() -> None:
    def nothing(episode: Episode) -> Tensor:
        return torch.full((*episode.query.shape[:2], 3), float("nan"))

    with pytest.raises(ValueError, match="Watching gave probabilities that are not numbers"):
        evaluate(Watching(nothing), clouds(0.1), **SMALL)


@pytest.mark.parametrize(
    ("features", "change", "error", "words"),
    [
        ({}, {}, ValueError, "features is empty"),
        ({"a": torch.full((9, 4), float("nan"))}, {}, ValueError, r"features\['a'\] holds NaN or infinite values"),
        ({"a": torch.zeros(9)}, {}, ValueError, r"features\['a'\] must have shape \[n, d\], not \[9\]"),
        ({"a": torch.zeros(9, 4).long()}, {}, TypeError, r"features\['a'\] must hold floating point"),
        ({"a": np.zeros((9, 4))}, {}, TypeError, r"features\['a'\] must be a torch.Tensor, not ndarray"),
        ({"a": torch.zeros(9, 4), "b": torch.zeros(9, 5)}, {}, ValueError, r"features of one width, not \[4, 5\]"),
        (clouds(1.0), {"sampling": "skewed"}, ValueError, "no sampling is called 'skewed'; there are balanced, dirich"),
        (clouds(1.0), {"sampling": "dirichlet", "concentration": 0}, ValueError, "concentration must be positive"),
        (clouds(1.0), {"present": 4}, ValueError, "present is 4, but episodes have 3 classes"),
        (clouds(1.0), {"present": 0}, ValueError, "present must be a whole number of classes, 1 or more"),
        (clouds(1.0), {"ways": 8}, ValueError, "8-way episodes need at least 8 classes; there are 7"),
        (clouds(1.0), {"queries": 20}, ValueError, "class 0 has 20 images, but 1 shots and 20 queries"),
        (clouds(1.0), {"episodes": 0}, ValueError, "episodes must be 1 or more, not 0"),
    ],
)
def test_wrong_input_is_turned_away(
    features: dict[str, Any], change: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        evaluate(create_method("protonet"), features, **SMALL | change)


# --- from images ------------------------------------------------------------------------------------------------------


def used_network(name: str = "conv4", **options: Any) -> nn.Module:
    """A network with random weights that has seen some images, so that its running statistics are not the initial."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = create_backbone(name, **options)
    with torch.no_grad():
        for seed in range(3):
            network(normalise(tiny_images(4, 4, seed=seed).images))
    return network


def test_embedding_is_the_network_in_evaluation_whatever_the_batch() -> None:
    network, images = used_network(filters=8), tiny_images(5, 3).images
    expected = copy.deepcopy(network).eval()(normalise(images))
    features = embed(network.train(), images, batch=4)
    torch.testing.assert_close(features, expected, rtol=1e-4, atol=1e-5)
    assert not features.requires_grad
    torch.testing.assert_close(
        embed(network, images, size=40), copy.deepcopy(network).eval()(normalise(images, 40)), rtol=1e-4, atol=1e-5
    )


def test_bfloat16_rounds_features_and_nothing_else() -> None:
    network, images = used_network(filters=8), tiny_images(5, 3).images
    exact, rounded = (embed(network, images, precision=precision) for precision in ("float32", "bfloat16"))
    assert rounded.dtype == torch.float32
    assert torch.equal(embed(network, images), exact), "a CPU computes in float32 unless told otherwise"
    error = (rounded - exact).norm() / exact.norm()
    assert 0 < error < 2**-6, "bfloat16 has 8 bits, and errors of layers add up"
    with pytest.raises(ValueError, match="precision must be one of float32, bfloat16, not 'half'"):
        embed(network, images, precision="half")


def test_features_are_sorted_by_the_name_of_their_class() -> None:
    images = tiny_images(4, 5)
    features = torch.arange(20.0)[:, None]
    groups = by_class(features, images)
    assert list(groups) == list(images.classes)
    assert torch.equal(groups["class 2"], features[10:15])


@pytest.mark.parametrize(("name", "options"), [("conv4", {"filters": 8}), ("resnet18", {})])
def test_episode_statistics_are_those_of_each_episode_alone(name: str, options: dict[str, Any]) -> None:
    network = used_network(name, **options).double().eval()
    before = copy.deepcopy(network.state_dict())
    inputs = normalise(tiny_images(3, 7).images).double()
    with torch.no_grad():
        with episode_statistics(network, 7):
            together = network(inputs)
        for episode in range(3):
            own = slice(7 * episode, 7 * episode + 7)
            alone = copy.deepcopy(network).train()(inputs[own])
            torch.testing.assert_close(together[own], alone, rtol=1e-9, atol=1e-9)
        assert not torch.allclose(together, network(inputs), rtol=1e-2)
    for key, value in network.state_dict().items():
        assert torch.equal(value, before[key]), f"{key} must not be touched"


def test_episode_statistics_work_on_vectors_and_without_weights() -> None:
    network = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3, affine=False)).double().eval()
    inputs = torch.randn(10, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with episode_statistics(network, 5):
        together = network(inputs)
    for own in (slice(0, 5), slice(5, 10)):
        torch.testing.assert_close(together[own], copy.deepcopy(network).train()(inputs[own]))


def test_the_network_is_itself_again_after_episode_statistics_also_when_something_fails() -> None:
    network, images = used_network(filters=8).eval(), normalise(tiny_images(2, 7).images)
    before = network(images)
    with episode_statistics(network, 7):
        pass
    with pytest.raises(KeyError), episode_statistics(network, 7):
        raise KeyError
    assert torch.equal(network(images), before)
    assert not any("forward" in vars(module) for module in network.modules())


def test_accuracy_with_running_statistics_is_that_of_the_features() -> None:
    network, images = used_network(filters=8), tiny_images(6, 6, noise=90.0)
    result = evaluate_images(network, create_method("team"), images, **SMALL)
    features = by_class(embed(network, images.images), images)
    assert torch.equal(result.accuracies, evaluate(create_method("team"), features, **SMALL).accuracies)


def test_accuracy_with_episode_statistics_is_that_of_each_episode_embedded_alone() -> None:
    network, images = used_network(filters=8), tiny_images(6, 6, noise=90.0)
    method = Watching()
    result = evaluate_images(network, method, images, statistics="episode", **SMALL)
    assert (len(result.accuracies), result.ways, result.shots, result.queries) == (40, 3, 1, 3)
    sampler = EpisodeSampler(images.labels, ways=3, shots=1, queries=3)
    drawn = sampler.sample(40, generator(0, "evaluation", 0))
    for episode in (0, 17, 39):
        index = torch.cat([drawn.support[episode], drawn.query[episode]])
        alone = copy.deepcopy(network).train()(normalise(images.images[index]))
        torch.testing.assert_close(torch.cat(method.episodes[episode]), alone.detach(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("statistics", ["running", "episode"])
def test_images_too_are_drawn_as_asked(statistics: Any) -> None:
    network, images = used_network(filters=8), tiny_images(6, 12, noise=90.0)
    method = create_method("team")
    result = evaluate_images(network, method, images, statistics=statistics, **SMALL, sampling="dirichlet", present=2)
    assert (result.sampling, result.concentration, result.present) == ("dirichlet", 2.0, 2)
    assert result.accuracies.shape == (40,)


def test_episode_statistics_are_another_measurement_and_a_repeatable_one() -> None:
    network, images = used_network(filters=8), tiny_images(6, 6, noise=90.0)
    before = copy.deepcopy(network.state_dict())

    def accuracies(statistics: Any) -> Tensor:
        return evaluate_images(network, create_method("team"), images, statistics=statistics, **SMALL).accuracies

    assert torch.equal(accuracies("episode"), accuracies("episode"))
    assert not torch.equal(accuracies("episode"), accuracies("running"))
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())
    with pytest.raises(ValueError, match="statistics must be 'running' or 'episode', not 'batch'"):
        accuracies("batch")
