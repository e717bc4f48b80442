"""team+: TEAM iterated. Bi-SIM is one step of a Sinkhorn iteration; its answers feed the next closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from team.checks import check_not_negative, check_positive, check_whole
from team.closed_form.algebra import inverse, plus_identity, whiten
from team.episode import Episode, result_dtype
from team.methods.base import Method
from team.methods.bd_cspn import unit
from team.methods.pt_map import sinkhorn

Balance = Literal["estimated", "uniform", "free"]
Products = Callable[[Tensor], Tensor]

_ANCHORS = 1024
_CHUNK_BYTES = 1 << 26


class TEAMPlus(Method):
    """Rounds of three closed forms: the metric, Bi-SIM's assignments z of the queries, the prototypes they give.

    Features are centred, scaled to unit length and moved towards their neighbours (:func:`smooth`). In each round every
    sample is must-linked to every prototype with weight z, so M† = (I + γM̃)⁻¹ with M̃ the scatter within classes
    (Eq. 10 with λ = α = 0, M0 = I); scores are -d²_M† / 2, divided by a temperature that falls from round to round.
    Two hypotheses about the balance of classes are followed and weighed by the evidence at the end:

    - uniform: both directions of Bi-SIM are normalised in turn, until every class has its equal share of queries;
    - free: only queries are normalised, and the share π of a class in the last round is its weight in the next.

    The shares found freely speak against balance if they vary, and so do answers that balance made less certain:
    t = N Σ_c (π_c - 1/N)² + 2 (H_uniform - H_free), with H the mean entropy of a query's answer, gives the free answer
    the weight t² / (t² + doubt²).

    Memory grows with n·d and n·N alone, and a round costs two products with the features.

    balance: "estimated" as above, or one of the two hypotheses alone; "free" where classes are known to be unequal
    power: features are raised to it before all else, which evens out those of a network that ends in a ReLU (PT-MAP)
    rounds: closed forms per hypothesis; gamma: γ; neighbours, smoothing: see :func:`smooth`
    start: the first round's temperature, in units of the last's
    shrinkage: how much the free shares are drawn to equal ones: as if so many times the queries had been seen equally
    doubt: how much evidence against balance counts as even odds
    """

    transductive = True

    def __init__(
        self,
        *,
        balance: Balance = "estimated",
        power: float = 1.0,
        rounds: int = 8,
        gamma: float = 2.0,
        neighbours: int = 10,
        smoothing: float = 0.4,
        start: float = 2.0,
        shrinkage: float = 0.15,
        doubt: float = 0.3,
        temperature: float = 0.045,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        if balance not in ("estimated", "uniform", "free"):
            raise ValueError(f"balance must be 'estimated', 'uniform' or 'free', not {balance!r}")
        check_whole(0, rounds=rounds, neighbours=neighbours)
        check_not_negative(gamma=gamma, smoothing=smoothing, shrinkage=shrinkage)
        check_positive(start=start, doubt=doubt, power=power)
        self.power = power
        self.balance, self.rounds, self.gamma, self.start = balance, rounds, gamma, start
        self.neighbours, self.smoothing = neighbours, smoothing
        self.shrinkage, self.doubt = shrinkage, doubt

    def log_probabilities(self, episode: Episode) -> Tensor:
        shots = episode.support.shape[-2]
        points = self.prepared(torch.cat([episode.support, episode.query], -2))
        return self.solved(replace(episode, support=points[:, :shots], query=points[:, shots:]))

    def solved(self, episode: Episode) -> Tensor:
        points = torch.cat([episode.support, episode.query], -2)
        products = total_metric(points, self.gamma)
        labelled = episode.membership(points.dtype)
        if self.balance != "estimated":
            return self._answer(products, labelled, points, uniform=self.balance == "uniform")
        uniform = self._answer(products, labelled, points, uniform=True)
        free = self._answer(products, labelled, points, uniform=False)
        evidence = variation(free) + 2 * (entropy(uniform) - entropy(free))  # [B]
        odds = (evidence.clamp_min(0) / self.doubt).square()[:, None, None]  # of the free answer
        return (odds * free.exp() + uniform.exp()).clamp_min(torch.finfo(points.dtype).tiny).log().log_softmax(-1)

    def prepared(self, points: Tensor) -> Tensor:
        """All points ``[B, n, d]``: centred, of unit length (zero if all are equal), smoothed."""
        points = points.to(result_dtype(points))
        points = points / points.detach().abs().amax((-2, -1), keepdim=True).clamp_min(1e-30)
        if self.power != 1:
            points = unit(points.sign() * points.abs().clamp_min(1e-12) ** self.power)
        points = unit(points - points.mean(-2, keepdim=True))
        if self.smoothing and self.neighbours:
            points = smooth(points, self.neighbours, self.smoothing)
        return points

    def _answer(self, products: Products, labelled: Tensor, points: Tensor, *, uniform: bool) -> Tensor:
        """log-probabilities of the queries ``[B, Q, N]`` under one hypothesis about the balance of classes."""
        batch, shots, ways = labelled.shape
        queries = points.shape[-2] - shots
        assigned = labelled.new_zeros(batch, queries, ways)
        potential = labelled.new_zeros(batch, 1, ways)  # what is added to the scores of a class
        for step in range(self.rounds + 1):
            membership = torch.cat([labelled, assigned], -2)
            cooled = self.temperature.to(points) * self.start ** (1 - step / max(self.rounds, 1))
            gamma = self.gamma if step else 0.0  # queries belong to no class yet: all scatter counts as within
            scores = metric_scores(products, membership, gamma)[:, shots:] / cooled
            if uniform:
                answer, potential = sinkhorn(scores, potential, 2)
            else:
                answer = (scores + potential).log_softmax(-1)
                share = answer.exp().mean(-2, keepdim=True)
                potential = (share + self.shrinkage / ways).clamp_min(1e-30).log()
            assigned = answer.exp()
        return answer


def smooth(points: Tensor, neighbours: int, strength: float) -> Tensor:
    """Unit vectors ``[B, n, d]``, each plus ``strength`` times the mean of its nearest (by cosine), centred and scaled.

    Neighbours weigh as their cosine, equally near ones are all taken, and a point is its own first. They are sought
    among all points up to 1024, else among about 1024 at even intervals: time grows with n, not with its square.
    """
    anchors = points[:, :: math.ceil(points.shape[-2] / _ANCHORS)]
    count = min(neighbours + 1, anchors.shape[-2])
    parts = []
    for chunk in torch.split(points, max(_CHUNK_BYTES // (4 * len(points) * anchors.shape[-2]), 1), dim=-2):
        cosines = (chunk @ anchors.mT).clamp_min(0)
        farthest = cosines.detach().topk(count).values[..., -1:]
        weights = torch.where(cosines >= farthest, cosines, 0)
        parts.append(chunk + strength * (weights / weights.sum(-1, keepdim=True).clamp_min(1e-6)) @ anchors)
    smoothed = torch.cat(parts, -2)
    return unit(smoothed - smoothed.mean(-2, keepdim=True))


def total_metric(points: Tensor, gamma: float) -> Products:
    """Under A⁻¹ with A = I + γT and T the mean scatter of points ``[B, n, d]``: from weights ``[B, n, N]`` to the inner
    products of all points with the N weighted sums of points, ``[B, n, N]``. By the smaller of Gram matrix and T."""
    n, dimension = points.shape[-2:]
    if n <= dimension:
        gram = points @ points.mT
        kernel = gram @ inverse(plus_identity(gamma / n * gram)) if gamma else gram
        return lambda weights: kernel @ weights
    metric = inverse(plus_identity(gamma / n * (points.mT @ points)))
    return lambda weights: points @ (metric @ (points.mT @ weights))


def metric_scores(products: Products, membership: Tensor, gamma: float) -> Tensor:
    """-d²_M†(x_i, p_c) / 2 less a part that depends on i alone, ``[B, n, N]``, for (soft) membership ``[B, n, N]``.

    Of the total scatter T, the part between classes is Σ_c (n_c/n) p_c p_cᵀ: taking it away from A, to leave the must-
    links within classes, is an update of rank N, so a round costs no factorisation but one of N×N.
    """
    counts = membership.sum(-2, keepdim=True)
    weights = membership / counts
    inner = products(weights)
    if gamma:
        between = (gamma / membership.shape[-2] * counts).sqrt()  # [B, 1, N]
        own = between.mT * (weights.mT @ inner) * between
        removed = whiten(plus_identity(-own), between.mT * inner.mT)
        inner = inner + removed.mT @ (removed @ weights)
    return inner - (weights * inner).sum(-2, keepdim=True) / 2


def variation(answer: Tensor) -> Tensor:
    """N Σ_c (π_c - 1/N)² of the shares π of classes in log-probabilities ``[B, Q, N]``, ``[B]``; zero if equal."""
    ways = answer.shape[-1]
    return ways * (answer.exp().mean(-2) - 1 / ways).square().sum(-1)


def entropy(answer: Tensor) -> Tensor:
    """The mean entropy of log-probabilities ``[B, Q, N]``, ``[B]``."""
    return -(answer.exp() * answer).sum(-1).mean(-1)
