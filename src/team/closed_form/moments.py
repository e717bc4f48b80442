"""The moment route: d×d matrices as sums over points, taken in chunks: memory does not grow with the queries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from team.closed_form.algebra import batched, compute_dtype, inverse, whiten
from team.closed_form.constraints import MetricSettings, cannot_link_rows, feasible, must_link_rows
from team.episode import Episode, class_means

_CHUNK_BYTES = 1 << 26


@dataclass(frozen=True, eq=False)
class Moments:
    """matrix: M† ``[B, d, d]``; lam: λ ``[B]``; centre: mean point ``[B, 1, d]``; shrinkage: 1 + γ tr M0M̃ ``[B]``."""

    matrix: Tensor
    lam: Tensor
    centre: Tensor
    shrinkage: Tensor


def solve_moments(episode: Episode, settings: MetricSettings) -> Moments:
    """Eq. 10 with d×d matrices; points are visited in chunks, so memory does not grow with their number."""
    batch, dimension = len(episode.support), episode.support.shape[-1]
    compute = compute_dtype(episode.support)
    support = episode.support.to(compute)
    membership = episode.membership(compute)
    others = episode.without_label()
    n = support.shape[1] + others.shape[1]
    total = support.sum(1, keepdim=True)
    for chunk in _chunks(others, support):
        total = total + chunk.to(compute).sum(1, keepdim=True)
    centre = total / n
    support = support - centre
    scatter = support.mT @ support
    for chunk in _chunks(others, support):
        centred = chunk.to(compute) - centre
        scatter = scatter + centred.mT @ centred

    nearest = _nearest(support, others, centre, settings.k)
    index = nearest.reshape(batch, -1, 1).expand(-1, -1, dimension)
    neighbours = others.gather(1, index).to(compute) - centre
    must = must_link_rows(support, membership, neighbours.reshape(batch, support.shape[1], settings.k, dimension))
    identity = torch.eye(dimension, dtype=compute, device=support.device)
    prior = identity if settings.prior is None else settings.prior.to(support)
    prior_inverse = identity if settings.prior is None else inverse(prior)
    link = settings.gamma * (must.mT @ must)
    matrix = prior_inverse + link
    shrinkage = 1 + (prior * link).sum((-2, -1))
    lam = support.new_full((batch,), settings.lam)
    if settings.lam > 0 and settings.gamma > 0:
        seen = None if settings.seen is None else batched(settings.seen, batch).to(support) - centre
        cannot = math.sqrt(settings.gamma) * cannot_link_rows(class_means(support, membership), seen)
        whitened = whiten(matrix, cannot.mT)
        lam = feasible(whitened.mT @ whitened, settings.lam)
        matrix = matrix - lam[:, None, None] * (cannot.mT @ cannot)
    metric = inverse(matrix) + settings.alpha / max(n - 1, 1) * scatter
    return Moments(metric, lam, centre, shrinkage)


def moment_distances(episode: Episode, settings: MetricSettings) -> tuple[Tensor, Tensor]:
    """Squared distances ``[B, Q, N]`` and λ ``[B]`` through M†."""
    moments = solve_moments(episode, settings)
    prototypes = episode.prototypes(moments.matrix.dtype)
    return squared_distances(moments, settings.prior, episode.query, prototypes), moments.lam


def squared_distances(moments: Moments, prior: Tensor | None, points: Tensor, prototypes: Tensor) -> Tensor:
    """d²_M† ``[B, n, N]`` of points ``[B, n, d]`` and prototypes ``[B, N, d]``; at least what M0/shrinkage gives."""
    prototypes = prototypes - moments.centre
    floor = 1 / moments.shrinkage[:, None, None]
    squared = []
    for chunk in _chunks(points, prototypes):
        centred = chunk.to(prototypes) - moments.centre
        value = _quadratic(centred, prototypes, moments.matrix)
        squared.append(torch.maximum(value, floor * _quadratic(centred, prototypes, prior).clamp_min(0)))
    return torch.cat(squared, 1)


def _quadratic(points: Tensor, prototypes: Tensor, matrix: Tensor | None) -> Tensor:
    """(x - p)ᵀ M (x - p) for points ``[B, n, d]`` and prototypes ``[B, N, d]``, ``[B, n, N]``; None: M = I."""
    left = points if matrix is None else points @ matrix.to(points)
    right = prototypes if matrix is None else prototypes @ matrix.to(points)
    own = (right * prototypes).sum(-1)
    squared: Tensor = (left * points).sum(-1)[..., None] - 2 * left @ prototypes.mT + own[:, None]
    return squared


def _nearest(support: Tensor, others: Tensor, centre: Tensor, k: int) -> Tensor:
    """Which k of ``others [B, n, d]`` are nearest to each centred support sample, ``[B, S, k]``; without gradient."""
    with torch.no_grad():
        best = support.new_empty(*support.shape[:2], 0)
        found = torch.empty(*support.shape[:2], 0, dtype=torch.int64, device=support.device)
        start = 0
        for chunk in _chunks(others, support):
            points = chunk.to(centre) - centre
            order = points.square().sum(-1)[:, None] - 2 * support @ points.mT
            index = torch.arange(start, start + chunk.shape[1], device=support.device).expand_as(order)
            best, found = torch.cat([best, order], -1), torch.cat([found, index], -1)
            best, keep = best.topk(min(k, best.shape[-1]), largest=False)
            found = found.gather(-1, keep)
            start += chunk.shape[1]
    return found


def _chunks(points: Tensor, support: Tensor) -> tuple[Tensor, ...]:
    """Points ``[B, n, d]`` in pieces whose float64 copy and whose distances to the support keep a fixed size."""
    batch, samples, dimension = support.shape
    return torch.split(points, max(_CHUNK_BYTES // (8 * batch * max(samples, dimension)), 1), dim=1)
