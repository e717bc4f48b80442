"""Claims about LMNN: it reaches the optimum of its convex loss, proves it, and leaves alone what it cannot know."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch import Tensor

from team.evaluation.lmnn import large_margin_metric
from team.evaluation.sparsity import neighbour_accuracy


def task(
    seed: int, *, each: tuple[int, ...] = (4, 4, 4), dimension: int = 3, apart: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Features ``[n, d]`` of Gaussian classes of these sizes, and labels ``[n]``."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(len(each)).repeat_interleave(torch.tensor(each))
    centres = apart * torch.randn(len(each), dimension, dtype=torch.float64, generator=random)
    return centres[labels] + torch.randn(len(labels), dimension, dtype=torch.float64, generator=random), labels


def rotation(dimension: int) -> Tensor:
    random = torch.Generator().manual_seed(5)
    return torch.linalg.qr(torch.randn(dimension, dimension, dtype=torch.float64, generator=random)).Q


def differences(features: Tensor, labels: Tensor, targets: int) -> tuple[np.ndarray, np.ndarray]:
    """C_ij of target neighbours ``[pairs, d²]`` and C_ij - C_il of triplets ``[triplets, d²]``, one by one."""
    x, y = features.numpy(), labels.tolist()
    squares = [[np.outer(a - b, a - b).ravel() for b in x] for a in x]
    pull, push = [], []
    for i in range(len(x)):
        peers = [j for j in range(len(x)) if y[j] == y[i] and j != i]
        for j in sorted(peers, key=lambda j: ((x[j] - x[i]) ** 2).sum())[:targets]:
            pull.append(squares[i][j])
            push += [squares[i][j] - squares[i][other] for other in range(len(x)) if y[other] != y[i]]
    return np.stack(pull), np.stack(push)


def least_loss(features: Tensor, labels: Tensor, targets: int, weight: float) -> float:
    """The minimum of the loss, from cvxpy."""
    pull, push = differences(features, labels, targets)
    metric = cp.Variable((features.shape[1], features.shape[1]), PSD=True)
    flat = cp.vec(metric, order="C")
    loss = (1 - weight) * cp.sum(pull @ flat) + weight * cp.sum(cp.pos(1 + push @ flat))
    return float(cp.Problem(cp.Minimize(loss)).solve(solver=cp.CLARABEL))


def loss_of(matrix: Tensor, features: Tensor, labels: Tensor, targets: int, weight: float) -> float:
    pull, push = differences(features, labels, targets)
    flat = matrix.numpy().ravel()
    return float((1 - weight) * (pull @ flat).sum() + weight * np.maximum(1 + push @ flat, 0).sum())


# --- the optimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("each", "dimension", "targets", "weight", "scale"),
    [
        ((4, 4, 4), 3, 3, 0.5, 1.0),
        ((4, 4, 4), 4, 1, 0.5, 1.0),
        ((2, 6, 4), 3, 3, 0.5, 1.0),  # a class with fewer samples than target neighbours asked for
        ((6, 6), 2, 2, 0.2, 1.0),
        ((5, 7), 4, 3, 0.8, 0.05),
        ((4, 4, 4), 3, 2, 0.5, 20.0),
    ],
)
def test_loss_equals_the_optimum_of_the_semidefinite_programme(
    each: tuple[int, ...], dimension: int, targets: int, weight: float, scale: float
) -> None:
    features, labels = task(dimension, each=each, dimension=dimension)
    features = features * scale
    result = large_margin_metric(features, labels, targets=targets, weight=weight, tolerance=1e-6)
    optimum = least_loss(features, labels, targets, weight)
    assert optimum > 0.1
    assert result.loss == pytest.approx(optimum, rel=5e-4)
    assert result.bound <= optimum * (1 + 1e-6)
    assert result.converged
    assert loss_of(result.matrix, features, labels, targets, weight) == pytest.approx(result.loss, rel=1e-9)


def test_metric_is_positive_semidefinite_and_losses_never_rise() -> None:
    result = large_margin_metric(*task(1, each=(10, 10, 10), dimension=6))
    assert torch.equal(result.matrix, result.matrix.mT)
    assert float(torch.linalg.eigvalsh(result.matrix)[0]) > -1e-12
    assert all(later <= earlier for earlier, later in zip(result.losses, result.losses[1:], strict=False))
    assert result.bound <= result.loss < result.losses[0]


def test_every_sample_is_classified_rightly_where_euclidean_neighbours_fail() -> None:
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(3).repeat_interleave(15)
    features = 10 * torch.randn(45, 5, generator=random)
    features[:, 2] = 0.3 * labels + 0.02 * torch.randn(45, generator=random)
    result = large_margin_metric(features, labels)
    assert neighbour_accuracy(features, labels) < 60
    assert neighbour_accuracy(features, labels, result.matrix) == 100
    assert int(result.matrix.diagonal().argmax()) == 2


def test_too_few_steps_are_reported_and_their_loss_is_that_of_the_matrix() -> None:
    features, labels = task(1, each=(10, 10, 10), dimension=6)
    result = large_margin_metric(features, labels, iterations=3)
    assert not result.converged
    assert len(result.losses) == 4
    assert loss_of(result.matrix, features, labels, 3, 0.5) == pytest.approx(result.loss)


# --- the span ---------------------------------------------------------------------------------------------------------


def test_fewer_samples_than_dimensions_reach_zero_and_keep_the_identity_outside_their_span() -> None:
    features, labels = task(2, dimension=30)
    result = large_margin_metric(features, labels)
    assert result.basis.shape == (30, 11)
    assert result.loss < 1e-5 * 0.5 * 12 * 3 * 8
    outside = torch.eye(30, dtype=torch.float64) - result.basis @ result.basis.mT
    assert torch.allclose(result.matrix @ outside, outside, atol=1e-12)
    turn = rotation(30)
    turned = large_margin_metric(features @ turn, labels).matrix
    assert torch.allclose(turned, turn.mT @ result.matrix @ turn, atol=1e-8)


def test_more_dimensions_add_the_identity_and_nothing_else() -> None:
    features, labels = task(3, each=(6, 6))
    frame = rotation(9)[:, :3]
    small = large_margin_metric(features, labels).matrix
    large = large_margin_metric(features @ frame.mT, labels).matrix
    expected = torch.eye(9) - frame @ frame.mT + frame @ small @ frame.mT
    assert torch.allclose(large, expected, atol=1e-4)


def test_an_episode_of_256_dimensions_takes_little_work() -> None:
    features, labels = task(4, each=(20,) * 5, dimension=256, apart=0.3)
    result = large_margin_metric(features.float(), labels)
    assert result.converged
    assert len(result.losses) < 500
    assert result.matrix.dtype == torch.float64
    assert neighbour_accuracy(features, labels, result.matrix) == 100


# --- invariances ------------------------------------------------------------------------------------------------------


def test_metric_ignores_place_order_and_names_and_turns_with_the_features() -> None:
    features, labels = task(6, each=(6, 5, 7))
    matrix = large_margin_metric(features, labels).matrix
    order = torch.randperm(18, generator=torch.Generator().manual_seed(0))
    turn = rotation(3)
    for other, expected in (
        (large_margin_metric(features + 7, labels), matrix),
        (large_margin_metric(features[order], labels[order]), matrix),
        (large_margin_metric(features, torch.tensor([40, -3, 11])[labels]), matrix),
        (large_margin_metric(features @ turn, labels), turn.mT @ matrix @ turn),
    ):
        assert torch.allclose(other.matrix, expected, atol=2e-3)


@pytest.mark.parametrize("scale", [0.01, 30.0])
def test_units_of_the_features_do_not_change_the_least_loss(scale: float) -> None:
    features, labels = task(7, each=(6, 6))
    least = large_margin_metric(features, labels).loss
    assert large_margin_metric(scale * features, labels).loss == pytest.approx(least, rel=2e-3)


# --- bad input --------------------------------------------------------------------------------------------------------

GOOD, LABELS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize(
    ("features", "labels", "options", "message"),
    [
        (GOOD[None], LABELS, {}, r"features must have shape \[n, d\]"),
        (GOOD.log(), LABELS, {}, "NaN or infinite"),
        (GOOD.double() * 1e100, LABELS, {}, "overflow"),
        (torch.ones(6, 3), LABELS, {}, "all features are equal"),
        (GOOD, LABELS[:5], {}, r"labels must be \[6\], .* not \[5\]"),
        (GOOD, LABELS * 0, {}, "one class"),
        (GOOD, torch.tensor([0, 0, 0, 0, 0, 4]), {}, "class 4 has one sample"),
        (GOOD, LABELS, {"targets": 0}, "targets must be a whole number"),
        (GOOD, LABELS, {"weight": 1.0}, "weight must lie between"),
        (GOOD, LABELS, {"tolerance": float("nan")}, "tolerance must be 0 or more"),
    ],
)
def test_bad_input_is_refused(features: Tensor, labels: Tensor, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        large_margin_metric(features, labels, **options)


@pytest.mark.parametrize("labels", [LABELS.float(), LABELS.bool(), LABELS.tolist()])
def test_labels_must_be_a_tensor_of_integers(labels: Any) -> None:
    with pytest.raises(TypeError, match="Tensor of integers"):
        large_margin_metric(GOOD, labels)
