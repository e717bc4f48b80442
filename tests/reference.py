"""TEAM from the paper's formulas alone: float64 numpy, explicit loops, explicit inverses. Shares no code with `team`.

It is slow and holds for one episode of tame size; the tests hold the package against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Pairs = list[tuple[Array, Array]]


def random_episode(
    seed: int,
    *,
    shots: tuple[int, ...] = (1, 2, 3),
    queries: int = 7,
    dimension: int = 6,
    batch: int | None = None,
    scale: float = 1.0,
    spread: float = 1.0,
) -> tuple[Array, Array, Array]:
    """Support ``[S, d]``, labels ``[S]``, query ``[Q, d]``, or a batch; samples lie ``spread`` around random centres.

    With a small spread and a large scale, classes are far apart and λ must be lowered.
    """
    random = np.random.default_rng(seed)
    leading = () if batch is None else (batch,)
    labels = np.repeat(np.arange(len(shots)), shots)
    centres = random.normal(size=(*leading, len(shots), dimension))
    support = centres[..., labels, :] + spread * random.normal(size=(*leading, len(labels), dimension))
    owners = np.arange(queries) % len(shots)
    query = centres[..., owners, :] + spread * random.normal(size=(*leading, queries, dimension))
    return scale * support, np.broadcast_to(labels, (*leading, len(labels))).copy(), scale * query


def random_prior(seed: int, dimension: int, batch: int | None = None) -> Array:
    """A well-conditioned symmetric positive definite matrix, or one per episode."""
    leading = () if batch is None else (batch,)
    factor = np.random.default_rng(seed).normal(size=(*leading, dimension, dimension))
    prior: Array = factor @ np.swapaxes(factor, -1, -2) / dimension + 0.5 * np.eye(dimension)
    return prior


def prototypes(support: Array, labels: Array) -> Array:
    """Eq. 11."""
    return np.stack([support[labels == c].mean(0) for c in range(int(labels.max()) + 1)])


def must_link_pairs(support: Array, labels: Array, query: Array, k: int) -> Pairs:
    """The set M below Eq. 11, each unordered pair once."""
    pairs: Pairs = []
    for i in range(len(support)):
        for j in range(i + 1, len(support)):
            if labels[i] == labels[j]:
                pairs.append((support[i], support[j]))
    centres = prototypes(support, labels)
    for sample, label in zip(support, labels, strict=True):
        pairs.append((sample, centres[label]))
    for sample in support:
        by_distance = sorted(range(len(query)), key=lambda index: float(((sample - query[index]) ** 2).sum()))
        pairs.extend((sample, query[index]) for index in by_distance[:k])
    return pairs


def cannot_link_pairs(centres: Array, seen: Array | None) -> Pairs:
    """The set C below Eq. 11, each unordered pair once."""
    pairs: Pairs = [(centres[a], centres[b]) for a in range(len(centres)) for b in range(a + 1, len(centres))]
    if seen is not None:
        pairs.extend((centre, known) for centre in centres for known in seen)
    return pairs


def mean_scatter(pairs: Pairs, dimension: int) -> Array:
    """Eq. 6; zero where there are no pairs."""
    total = np.zeros((dimension, dimension))
    for left, right in pairs:
        total += np.outer(left - right, left - right)
    return total / max(len(pairs), 1)


def covariance(support: Array, query: Array) -> Array:
    """Σ of Eq. 10."""
    points = np.concatenate([support, query])
    centre = points.mean(0)
    total = np.zeros((points.shape[1], points.shape[1]))
    for point in points:
        total += np.outer(point - centre, point - centre)
    return total / max(len(points) - 1, 1)


def feasible_lam(lam: float, attract: Array, repel: Array) -> float:
    """min(λ, 0.99/ρ), with ρ the largest eigenvalue of γC̃ (``repel``) against M0⁻¹ + γM̃ (``attract``)."""
    largest = float(np.linalg.eigvals(np.linalg.inv(attract) @ repel).real.max())
    return min(lam, 0.99 / largest) if largest > 0 else lam


@dataclass(frozen=True)
class Solution:
    """Everything the tests look at: M† and d_M†, Y of Eq. 9 and the λ in it."""

    metric: Array
    distances: Array
    inverse: Array
    lam: float


def solve(
    support: Array,
    labels: Array,
    query: Array,
    *,
    k: int = 5,
    gamma: float = 0.2,
    lam: float = 0.01,
    alpha: float = 2.0,
    prior: Array | None = None,
    seen: Array | None = None,
) -> Solution:
    """Eq. 9, 10 and 3 for one episode."""
    dimension = support.shape[1]
    centres = prototypes(support, labels)
    must = mean_scatter(must_link_pairs(support, labels, query, k), dimension)
    cannot = mean_scatter(cannot_link_pairs(centres, seen), dimension)
    attract = np.linalg.inv(np.eye(dimension) if prior is None else prior) + gamma * must
    used = feasible_lam(lam, attract, gamma * cannot)
    inverse = attract - gamma * used * cannot
    metric = np.linalg.inv(inverse) + alpha * covariance(support, query)
    return Solution(metric, distances(metric, query, centres), inverse, used)


def distances(metric: Array, query: Array, centres: Array) -> Array:
    """Eq. 3 between every query and every prototype, ``[Q, N]``."""
    return np.array([[np.sqrt((x - p) @ metric @ (x - p)) for p in centres] for x in query])


def objective(metric: Array, inverse: Array) -> float:
    """Eq. 8, as rewritten above Eq. 9: tr(M·Y) - log det M."""
    return float(np.trace(metric @ inverse) - np.linalg.slogdet(metric)[1])


def bidirectional_similarity(distance: Array) -> Array:
    """s_{i<->c} = s_{i->c} · s_{c->i}, Eq. 12 and 13 with plain exponentials."""
    weight = np.exp(-distance)
    return (weight / weight.sum(1, keepdims=True)) * (weight / weight.sum(0, keepdims=True))


def mixed(images: Array, partner: Array, weight: Array) -> Array:
    """Eq. 2, one sample after the other."""
    return np.stack([w * images[i] + (1 - w) * images[j] for i, (j, w) in enumerate(zip(partner, weight, strict=True))])
