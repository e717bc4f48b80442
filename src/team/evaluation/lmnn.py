"""Large margin nearest neighbours, LMNN (Weinberger, Blitzer and Saul, NIPS 2006; Weinberger and Saul, JMLR 2009).

With j a target neighbour of i (one of its k Euclidean nearest of the same class), LMNN minimises over M ⪰ 0

    P(M) = (1-μ) Σ_ij d²_M(x_i, x_j) + μ Σ_ijl [1 + d²_M(x_i, x_j) - d²_M(x_i, x_l)]₊,    y_l ≠ y_i.

P is convex, but has kinks, at which projected subgradient steps jam. So the hinge is replaced by a Huber function of
width ε, accelerated projected gradient steps with backtracking are taken on that smooth loss, and ε is lowered as the
loss falls. The slopes α in [0, μ] of the Huber functions are a point of the dual problem: wherever
Q(α) = (1-μ) Σ_ij C_ij + Σ_ijl α_ijl (C_ij - C_il) ⪰ 0, with C_ij = (x_i - x_j)(x_i - x_j)ᵀ, no M has a loss below Σ α.

The loss sees M only through the span of the centred samples, of r ≤ min(n - 1, d) dimensions, so all work is done in an
orthonormal basis V of it. Nothing is lost by that: every gradient lies in the span, and steps that start at M = I leave
the rest of the space at the identity, M = I - VVᵀ + V S Vᵀ. The samples say nothing about that rest; it is the start's.
Where target neighbours span fewer than r dimensions, as with n ≤ d samples in general position, the minimum is zero:
linked neighbours fall together, other samples stay apart, and many M do that. The start then also decides which.
Elsewhere Q(0) ≻ 0, and steps are taken in coordinates where Q(0) = I, since plain ones converge far more slowly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from team.episode import check_features


@dataclass(frozen=True, eq=False)
class LMNNResult:
    """matrix: M float64 ``[d, d]``, positive semidefinite, the identity outside the span of basis: V ``[d, r]``.

    losses: P of the best M so far, at the start and after each step, so it never rises; bound: no M has a lower loss;
    converged: loss - bound is within the tolerance; active: triplets whose hinge is not zero.
    """

    matrix: Tensor
    basis: Tensor
    losses: tuple[float, ...]
    bound: float
    converged: bool
    active: int

    @property
    def loss(self) -> float:
        return self.losses[-1]


@torch.no_grad()
def large_margin_metric(
    features: Tensor,
    labels: Tensor,
    *,
    targets: int = 3,
    weight: float = 0.5,
    iterations: int = 5000,
    tolerance: float = 1e-5,
) -> LMNNResult:
    """The LMNN metric of ``features [n, d]`` with integer ``labels [n]``, computed in float64.

    targets: k, target neighbours of each sample (all others of its class, where it has fewer); weight: μ.
    iterations: the most steps taken; tolerance: stop once the loss is proven to be this close to the minimum, as a
    share of the loss of M = 0, that is μ times the number of triplets. The margin is 1, in units of squared features.
    """
    _check(features, labels, targets, weight, iterations, tolerance)
    centred = features.double() - features.double().mean(0)
    _, scales, directions = torch.linalg.svd(centred, full_matrices=False)
    rank = int((scales > scales[0] * max(centred.shape) * torch.finfo(scales.dtype).eps).sum())
    if rank == 0:
        raise ValueError("all features are equal: there is nothing to tell apart")
    basis = directions[:rank].mT
    problem = _Problem(centred @ basis, labels, targets, weight)
    best, losses, bound, converged = _minimise(problem, iterations, tolerance)
    active = int((problem.losses(best, width=1.0)[2] > 0).sum())
    inner = problem.frame @ best @ problem.frame.mT
    matrix = _identity(centred) + basis @ (inner - _identity(inner)) @ basis.mT
    return LMNNResult((matrix + matrix.mT) / 2, basis, tuple(losses), bound, converged, active)


def squared_distances(features: Tensor, matrix: Tensor | None = None) -> Tensor:
    """(x_i - x_j)ᵀ M (x_i - x_j) of all pairs of ``features [n, d]``, as ``[n, n]``; Euclidean without a matrix."""
    gram = (features if matrix is None else features @ matrix) @ features.mT
    norms = gram.diagonal()
    return norms[:, None] + norms - gram - gram.mT


class _Problem:
    """The loss of samples ``[n, r]``, and what the steps and the bound need to know about it."""

    def __init__(self, samples: Tensor, labels: Tensor, targets: int, weight: float) -> None:
        self.samples, self.weight = samples, weight
        same = labels[:, None] == labels
        peers = same.clone().fill_diagonal_(False)
        distances = squared_distances(samples).masked_fill(~peers, math.inf)
        nearest, self.targets = distances.topk(min(targets, int(peers.sum(1).max())), largest=False)
        self.real = nearest.isfinite()  # [n, k]: samples of a small class have fewer target neighbours
        self.triplets = self.real[:, :, None] & ~same[:, None, :]  # [n, k, n]
        factor, failed = torch.linalg.cholesky_ex(self.gradient(torch.zeros_like(self.triplets, dtype=samples.dtype)))
        self.pulls_all = not failed and bool(factor.diagonal().min() > 1e-6 * factor.diagonal().max())  # Q(0) ≻ 0
        factor = factor if self.pulls_all else _identity(samples)
        self.start = factor.mT @ factor  # S = I, seen in the frame
        self.frame = torch.linalg.solve_triangular(factor, _identity(samples), upper=False).mT
        self.samples = samples @ self.frame

    def losses(self, metric: Tensor, width: float) -> tuple[float, float, Tensor]:
        """P(M), the same with Huber functions of this width, and their slopes α ``[n, k, n]``."""
        distances = squared_distances(self.samples, metric)
        near = distances.gather(1, self.targets)
        pull = (1 - self.weight) * float((near * self.real).sum())
        hinges = (1 + near[:, :, None] - distances[:, None, :]).clamp_min(0).masked_fill(~self.triplets, 0)
        share = (hinges / width).clamp_max(1)
        smooth = float((share * (hinges - width / 2 * share)).sum())
        return pull + self.weight * float(hinges.sum()), pull + self.weight * smooth, self.weight * share

    def gradient(self, slopes: Tensor) -> Tensor:
        """Q(α) ``[r, r]``: with α the slopes at M, the gradient of the smooth loss there."""
        pairs = -slopes.sum(1)
        pairs.scatter_add_(1, self.targets, slopes.sum(2) + (1 - self.weight) * self.real)
        pairs = pairs + pairs.mT
        return self.samples.mT @ (pairs.sum(1)[:, None] * self.samples - pairs @ self.samples)

    def bound(self, slopes: Tensor) -> float:
        """Σ tα for the largest t ≤ 1 with Q(tα) ⪰ 0, which no metric's loss is below; 0 where Q(0) is singular."""
        if not self.pulls_all:
            return 0.0
        lowest = float(torch.linalg.eigvalsh(self.gradient(slopes))[0]) - 1  # of Q(α) - Q(0), since Q(0) = I
        return float(slopes.sum()) / max(1.0, -lowest)


def _minimise(problem: _Problem, iterations: int, tolerance: float) -> tuple[Tensor, list[float], float, bool]:
    """The best metric ``[r, r]`` found, the losses on the way, a lower bound, and whether the two are close enough."""
    current = problem.start
    width = max(1.0, float(squared_distances(problem.samples, current).mean()))  # the size of the first hinges
    loss, smooth, slopes = problem.losses(current, width)
    best, losses, bound, previous, momentum = current, [loss], 0.0, current, 1.0
    allowed = tolerance * problem.weight * int(problem.triplets.sum())
    steepness = float(problem.gradient(slopes).norm()) or 1.0  # inverse step length: the first step is of length one
    for step in range(1, iterations + 1):
        if losses[-1] - bound <= allowed:
            break
        faster = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = current + (momentum - 1) / faster * (current - previous)
        proposed, steepness = _descend(problem, ahead, width, steepness)
        loss, smooth_proposed, _ = problem.losses(proposed, width)
        best = proposed if loss < losses[-1] else best
        losses.append(min(loss, losses[-1]))
        if smooth_proposed > smooth:  # momentum led uphill: go on from here without it
            previous, momentum = current, 1.0
        else:
            previous, current, smooth, momentum = current, proposed, smooth_proposed, faster
        if step % 10 == 0:  # the bound costs about as much as a step
            loss, smooth, slopes = problem.losses(current, width)
            bound = max(bound, problem.bound(slopes))
            if loss - smooth > 0.6 * (loss - bound):  # most of what is left to gain hides in the rounded kinks
                width, previous, momentum = width / 4, current, 1.0
                smooth = problem.losses(current, width)[1]
    return best, losses, bound, losses[-1] - bound <= allowed


def _descend(problem: _Problem, metric: Tensor, width: float, steepness: float) -> tuple[Tensor, float]:
    """A projected gradient step on the smooth loss, short enough to descend; and the steepness to try next."""
    gradient = problem.gradient(problem.losses(metric, width)[2])
    while True:
        values, vectors = torch.linalg.eigh(metric - gradient / steepness)
        proposed = (vectors * values.clamp_min(0)) @ vectors.mT  # the nearest positive semidefinite matrix
        move = proposed - metric
        turn = problem.gradient(problem.losses(proposed, width)[2]) - gradient
        # By convexity this is enough for descent; unlike a test of the loss itself, rounding does not blur it.
        if float((turn * move).sum()) <= steepness / 2 * float(move.square().sum()):
            return proposed, 0.9 * steepness
        steepness *= 2


def _identity(like: Tensor) -> Tensor:  # [..., d] -> [d, d]
    return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)


def _check(features: Tensor, labels: Tensor, targets: int, weight: float, iterations: int, tolerance: float) -> None:
    check_features("features", features, dims=(2,))
    if float(features.abs().max()) > 1e30:
        raise ValueError("features are so large that their squares overflow; divide them by a constant")
    if not isinstance(labels, Tensor) or labels.dtype not in (torch.int64, torch.int32, torch.uint8):
        raise TypeError("labels must be a torch.Tensor of integers, one per sample; use torch.as_tensor(labels).long()")
    if labels.shape != features.shape[:1] or labels.device != features.device:
        found = f"{list(labels.shape)} on {labels.device}"
        raise ValueError(f"labels must be [{len(features)}], one per sample, on {features.device}, not {found}")
    classes, counts = torch.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise ValueError("labels name one class; with fewer than two there is nothing to keep apart")
    if int(counts.min()) < 2:
        raise ValueError(f"class {int(classes[counts.argmin()])} has one sample; add another, or leave the class out")
    for name, value in (("targets", targets), ("iterations", iterations)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number, 1 or more, not {value!r}")
    if not 0 < weight < 1:
        raise ValueError(f"weight must lie between 0 (only pull) and 1 (only push), not at or beyond them: {weight}")
    if not 0 <= tolerance < math.inf:
        raise ValueError(f"tolerance must be 0 or more, not {tolerance}")
