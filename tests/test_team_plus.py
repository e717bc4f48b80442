"""Claims about team+: its rounds are the closed form with weighted must-links, and it does not assume equal classes."""

from __future__ import annotations

import resource

import numpy as np
import pytest
import reference
import torch
from numpy.typing import NDArray
from torch import Tensor

from team import create_method
from team.methods.team_plus import TEAMPlus, metric_scores, smooth, total_metric

Array = NDArray[np.float64]


def episode(seed: int = 0, **shape: object) -> tuple[Tensor, Tensor, Tensor]:
    support, labels, query = map(torch.from_numpy, reference.random_episode(seed, **shape))  # type: ignore[arg-type]
    return support, labels, query


def clusters(sizes: tuple[int, ...], *, seed: int = 0, dimension: int = 20, noise: float = 0.5) -> list[Tensor]:
    """One support sample per class, ``sizes`` queries of each, and their labels."""
    random = torch.Generator().manual_seed(seed)
    centres = torch.randn(len(sizes), dimension, generator=random)
    truth = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    support = centres + noise * torch.randn(centres.shape, generator=random)
    query = centres[truth] + noise * torch.randn(len(truth), dimension, generator=random)
    return [support, torch.arange(len(sizes)), query, truth]


# --- a slow reference, one sample and one class at a time -------------------------------------------------------------


def unit(x: Array) -> Array:
    return np.asarray(x / max(np.sqrt((x * x).sum()), 1e-6))


def slow_points(support: Array, query: Array, neighbours: int, smoothing: float) -> Array:
    points = np.vstack([support, query])
    points = points / np.abs(points).max()
    points = np.array([unit(x) for x in points - points.mean(0)])
    moved = []
    for x in points:
        cosines = np.maximum(points @ x, 0)
        near = np.argsort(-cosines)[: neighbours + 1]
        moved.append(x + smoothing * sum(cosines[j] * points[j] for j in near) / cosines[near].sum())
    return np.array([unit(x) for x in np.array(moved) - np.mean(moved, 0)])


def slow_scores(points: Array, membership: Array, gamma: float) -> Array:
    """-d²/2 under the inverse of I + γM̃, M̃ the mean of all must-links (sample, prototype) weighted by membership."""
    n, d = points.shape
    ways = membership.shape[1]
    centres = [membership[:, c] @ points / membership[:, c].sum() for c in range(ways)]
    links = np.zeros((d, d))
    for i in range(n):
        for c in range(ways):
            links += membership[i, c] * np.outer(points[i] - centres[c], points[i] - centres[c]) / n
    metric = np.linalg.inv(np.eye(d) + gamma * links)
    return np.array([[-(x - p) @ metric @ (x - p) / 2 for p in centres] for x in points])


def softmax(scores: Array) -> Array:
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(weights / weights.sum(1, keepdims=True))


def slow_answer(points: Array, labels: Array, *, uniform: bool, rounds: int = 8) -> Array:
    shots, ways = len(labels), int(labels.max()) + 1
    queries = len(points) - shots
    labelled, potential = np.eye(ways)[labels], np.zeros(ways)
    answer = np.zeros((queries, ways))
    for step in range(rounds + 1):
        membership = np.vstack([labelled, answer])
        if step == 0:  # prototypes of the support alone, and no links yet
            centres = reference.prototypes(points[:shots], labels)
            total = np.linalg.inv(np.eye(points.shape[1]) + 2.0 * points.T @ points / len(points))
            scores = np.array([[-(x - p) @ total @ (x - p) / 2 for p in centres] for x in points])
        else:
            scores = slow_scores(points, membership, 2.0)
        scores = scores[shots:] / (0.045 * 2.0 ** (1 - step / rounds))
        if uniform:
            for _ in range(2):
                potential = potential + np.log(queries / ways) - np.log(softmax(scores + potential).sum(0))
        answer = softmax(scores + potential)
        if not uniform:
            potential = np.log(answer.mean(0) + 0.15 / ways)
    return answer


def slow_team_plus(support: Array, labels: Array, query: Array) -> Array:
    points = slow_points(support, query, 10, 0.4)
    uniform, free = (slow_answer(points, labels, uniform=balance) for balance in (True, False))
    ways = uniform.shape[1]
    entropies = [-(p * np.log(p)).sum(1).mean() for p in (uniform, free)]
    evidence = ways * ((free.mean(0) - 1 / ways) ** 2).sum() + 2 * (entropies[0] - entropies[1])
    odds = (max(evidence, 0) / 0.3) ** 2
    return np.asarray((odds * free + uniform) / (odds + 1))


@pytest.mark.parametrize("dimension", [6, 60])
def test_team_plus_is_its_rounds_of_closed_forms_by_both_routes(dimension: int) -> None:
    for seed in range(3):
        support, labels, query = episode(seed, shots=(1, 2, 3), queries=14, dimension=dimension)
        found = create_method("team+")(support, labels, query).exp()
        wanted = slow_team_plus(support.numpy(), labels.numpy(), query.numpy())
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("dimension", [5, 50])
def test_a_round_solves_the_closed_form_with_must_links_weighted_by_the_assignments(dimension: int) -> None:
    random = torch.Generator().manual_seed(0)
    points = torch.randn(1, 20, dimension, generator=random, dtype=torch.float64)
    points = points - points.mean(1, keepdim=True)
    membership = torch.rand(1, 20, 3, generator=random, dtype=torch.float64)
    membership = membership / membership.sum(-1, keepdim=True)
    found = metric_scores(total_metric(points, 3.0), membership, 3.0)[0].log_softmax(-1)
    wanted = torch.from_numpy(slow_scores(points[0].numpy(), membership[0].numpy(), 3.0)).log_softmax(-1)
    torch.testing.assert_close(found, wanted)


# --- what it is for ---------------------------------------------------------------------------------------------------


def test_equal_classes_are_found_equal_and_unequal_ones_unequal() -> None:
    for sizes in ((15, 15, 15, 15, 15), (40, 20, 10, 4, 1), (38, 37, 0, 0, 0)):
        accuracies = {}
        for balance in ("estimated", "uniform", "free"):
            method = TEAMPlus(balance=balance)  # type: ignore[arg-type]
            right = [
                float((method(support, labels, query).argmax(-1) == truth).double().mean())
                for support, labels, query, truth in (clusters(sizes, seed=seed, noise=0.9) for seed in range(20))
            ]
            accuracies[balance] = sum(right) / len(right)
        best = max(accuracies["uniform"], accuracies["free"])
        assert accuracies["estimated"] > best - 0.03, (sizes, accuracies)


def test_rounds_beat_team_and_no_rounds() -> None:
    right = dict.fromkeys(("team", "0 rounds", "team+"), 0)
    methods = {"team": create_method("team"), "0 rounds": TEAMPlus(rounds=0), "team+": create_method("team+")}
    for seed in range(30):
        support, labels, query, truth = clusters((15,) * 5, seed=seed, noise=1.0)
        for name, method in methods.items():
            right[name] += int((method(support, labels, query).argmax(-1) == truth).sum())
    assert right["team+"] > right["0 rounds"] + 30
    assert right["team+"] > right["team"] + 30


def test_the_scale_of_features_does_not_matter() -> None:
    support, labels, query = episode(queries=20)
    answer = create_method("team+")(support, labels, query)
    for scale in (1e-20, 1e20):
        torch.testing.assert_close(create_method("team+")(scale * support, labels, scale * query), answer)


def test_smoothing_moves_points_towards_their_neighbours_alone() -> None:
    angles = torch.tensor([0.0, 0.2, 3.1, 3.3], dtype=torch.float64)
    points = torch.stack([angles.cos(), angles.sin()], -1)[None]
    points = points / points.norm(dim=-1, keepdim=True)
    moved = smooth(points, 1, 1.0)
    assert float((moved[0, 0] - moved[0, 1]).norm()) < float((points[0, 0] - points[0, 1]).norm())
    assert float((moved[0, 0] - moved[0, 2]).norm()) > 1.9


def test_a_folder_of_many_images_needs_little_memory() -> None:
    """20 000 queries, where a matrix of all pairs would take 1.6 GB; and neighbours from a sample of them."""
    support, labels, query, truth = clusters((9000, 6000, 3000, 1500, 500), dimension=64, noise=0.7)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = create_method("team+")(support, labels, query)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # kB
    assert float((answer.argmax(-1) == truth).double().mean()) > 0.95
