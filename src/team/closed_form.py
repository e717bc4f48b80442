"""The closed form of Sec. 3.3: pair constraints, feasibility, and two exact routes to the distances.

Notation. The must-link pairs enter as rows D with M̃ = DᵀD, the cannot-link pairs as rows E with C̃ = EᵀE (Eq. 6), so

    A = M0⁻¹ + γ DᵀD,    Y = A - γλ EᵀE,    M† = Y⁻¹ + α Σ    (Eq. 9 and 10).

A is always positive definite; Y is when λ times the largest eigenvalue of γ E A⁻¹ Eᵀ stays below one. Where the given
λ is too large for that, the problem of Eq. 8 has no minimum, and λ is lowered for that episode (`_feasible`).

Two exact routes give the same distances. In the *span* route every vector is written as a combination of the episode's
points, and all that is needed is their Gram matrix: no d×d matrix appears. In the *moment* route the d×d matrices are
sums over points, taken in chunks. Both compute in float64, whatever the input: the span route subtracts, and loses a
factor of at most 1 + γ·tr(M0 M̃) in relative precision, which float64 can spare and float32 cannot.

Everything here trusts its input and never waits for the device, so that it can be captured in a CUDA graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsIndex

import torch
from torch import Tensor

from team.episode import Episode, class_means

_MARGIN = 0.01  # Y keeps at least this fraction of A in every direction
_SQUARINGS = 12
_CHUNK_BYTES = 1 << 26


@dataclass(frozen=True, eq=False)
class MetricSettings:
    """The parameters of Eq. 3-10.

    k: nearest queries linked to each support sample; gamma, lam, alpha: γ, λ, α
    prior: M0 ``[d, d]`` or ``[B, d, d]``, None for the identity
    seen: prototypes of the classes seen in training ``[T, d]`` or ``[B, T, d]``, None for none
    """

    k: int = 5
    gamma: float = 0.2
    lam: float = 0.01
    alpha: float = 2.0
    prior: Tensor | None = None
    seen: Tensor | None = None

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, SupportsIndex) or int(self.k) < 0:
            raise ValueError(f"k must be a whole number of neighbours, 0 or more, not {self.k!r}")
        for name in ("gamma", "lam", "alpha"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name} must be finite and not negative, not {value}")


def episode_distances(episode: Episode, settings: MetricSettings) -> tuple[Tensor, Tensor]:
    """d_M†(query, prototype) ``[B, Q, N]``, not squared, and the λ used ``[B]``, by the cheaper route."""
    dimension = episode.support.shape[-1]
    seen = 0 if settings.seen is None else settings.seen.shape[-2]
    points = episode.support.shape[-2] + episode.query.shape[-2] + seen
    pairs = episode.support.shape[-2] * (1 + settings.k)
    route = span_distances if max(points, pairs) < dimension else moment_distances
    squared, lam = route(episode, settings)
    return safe_root(squared).to(result_dtype(episode.support)), lam


# --- pair constraints -------------------------------------------------------------------------------------------------


def _must_link_rows(support: Tensor, membership: Tensor, neighbours: Tensor) -> Tensor:
    """D with DᵀD = M̃ (Eq. 6), ``[B, S + S·k, x]``. support: ``[B, S, x]``, neighbours: ``[B, S, k, x]``.

    The n_c(n_c-1)/2 pairs within a class sum to n_c Σ_i (x_i - p_c)(x_i - p_c)ᵀ, and the pairs of a sample with its
    own prototype add one such sum: a class's n_c rows stand for all of its pairs.
    """
    batch, samples, k, width = neighbours.shape
    counts = membership.sum(-2)
    own = membership @ class_means(support, membership)
    shots = (membership @ counts[..., None]).expand_as(own)
    same = (shots + 1).sqrt() * (support - own)
    near = (support[:, :, None] - neighbours).reshape(batch, samples * k, width)
    pairs = (counts * (counts - 1) / 2).sum(-1) + samples + samples * k
    return torch.cat([same, near], 1) / pairs.sqrt()[:, None, None]


def _cannot_link_rows(prototypes: Tensor, seen: Tensor | None) -> Tensor:
    """E with EᵀE = C̃ (Eq. 6). prototypes: ``[B, N, x]``, seen: ``[B, T, x]`` -> ``[B, N, x]`` or ``[B, N + 1 + T, x]``.

    Sums over all pairs are again sums over deviations from means: N + 1 + T rows stand for N(N-1)/2 + N·T pairs.
    """
    ways = prototypes.shape[-2]
    centre = prototypes.mean(-2, keepdim=True)
    if seen is None:
        return (prototypes - centre) * math.sqrt(ways / max(ways * (ways - 1) / 2, 1))
    known = seen.shape[-2]
    seen_centre = seen.mean(-2, keepdim=True)
    rows = [
        (prototypes - centre) * math.sqrt(ways + known),
        (centre - seen_centre) * math.sqrt(ways * known),
        (seen - seen_centre) * math.sqrt(ways),
    ]
    return torch.cat(rows, -2) / math.sqrt(ways * (ways - 1) / 2 + ways * known)


def _feasible(bound: Tensor, lam: float) -> Tensor:
    """The λ to use, ``[B]``: the given one, or the largest that keeps Y ⪰ 0.01·A. bound: γ E A⁻¹ Eᵀ ``[B, e, e]``.

    Its largest eigenvalue is approached from above by (tr Xˢ)^(1/s) with s = 2¹², reached by squaring: this is smooth,
    never too small, at most 0.2 % too large for 100 rows, and needs no eigensolver (which would wait for the device).
    """
    power = bound
    log_eigenvalue = bound.new_zeros(bound.shape[:-2])
    for step in range(_SQUARINGS):
        if step % 4 == 0:  # often enough: a unit trace squared four times cannot vanish in float64
            trace = power.diagonal(dim1=-2, dim2=-1).sum(-1).clamp_min(1e-100)
            log_eigenvalue = log_eigenvalue + trace.log() / 2**step
            power = power / trace[..., None, None]
        power = power @ power
    trace = power.diagonal(dim1=-2, dim2=-1).sum(-1).clamp_min(1e-100)
    log_eigenvalue = log_eigenvalue + trace.log() / 2**_SQUARINGS
    largest = log_eigenvalue.exp().clamp_min(1e-30)
    used: Tensor = ((1 - _MARGIN) / largest).clamp_max(lam)
    return used


# --- the span route ---------------------------------------------------------------------------------------------------


def span_distances(episode: Episode, settings: MetricSettings) -> tuple[Tensor, Tensor]:
    """Squared distances ``[B, Q, N]`` and λ ``[B]`` from inner products of the episode's p points alone."""
    support, query = episode.support.shape[-2], episode.query.shape[-2]
    batch, n = len(episode.support), support + query
    compute = compute_dtype(episode.support)
    centre = (_sum(episode.support) + _sum(episode.query)) / n
    parts = [episode.support, *torch.split(episode.query, (query + 1) // 2, dim=1)]
    if settings.seen is not None:
        parts.append(_batched(settings.seen, batch).to(episode.support.device))
    parts = [part.to(compute, copy=True).sub_(centre) for part in parts]
    gram = _gram(parts, None)
    prior_gram = gram if settings.prior is None else _gram(parts, settings.prior.to(gram))

    with torch.no_grad():  # |x_j|² - 2 x_i·x_j orders the queries x_j of a support sample x_i by distance
        order = gram.diagonal(dim1=-2, dim2=-1)[:, None, support:n] - 2 * gram[:, :support, support:n]
        nearest = order.topk(settings.k, largest=False).indices

    # From here on a vector is its coefficients over the points: point i is row i of the identity.
    identity = torch.eye(gram.shape[1], dtype=gram.dtype, device=gram.device)
    membership = episode.membership(gram.dtype)
    own = identity[:support].expand(batch, -1, -1)
    prototypes = class_means(own, membership)
    must = math.sqrt(settings.gamma) * _must_link_rows(own, membership, identity[support + nearest])
    products = must @ prior_gram
    strength = products @ must.mT
    whitened = _whiten(_plus_identity(strength), products)
    # Inner products under A⁻¹ and Y⁻¹ are needed of prototypes (and seen ones) with all points, and of queries with
    # themselves: rows [B, N + T, p] and a diagonal [B, p], never the whole p×p matrix.
    known = prototypes if settings.seen is None else torch.cat([prototypes, identity[n:].expand(batch, -1, -1)], 1)
    known_prior = known @ prior_gram
    prior_diagonal = prior_gram.diagonal(dim1=-2, dim2=-1)
    rows = known_prior - (known @ whitened.mT) @ whitened
    diagonal = prior_diagonal - whitened.square().sum(-2)
    lam = gram.new_full((batch,), settings.lam)
    if settings.lam > 0 and settings.gamma > 0:
        count = known.shape[1]
        own = torch.eye(count, dtype=gram.dtype, device=gram.device).expand(batch, -1, -1)
        seen = None if settings.seen is None else own[:, episode.ways :]
        cannot = math.sqrt(settings.gamma) * _cannot_link_rows(own[:, : episode.ways], seen)
        products = cannot @ rows
        bound = products @ (cannot @ known).mT
        lam = _feasible(bound, settings.lam)
        scale = lam[:, None, None]
        whitened = _whiten(_plus_identity(-scale * bound), products)
        rows = rows + scale * ((known @ whitened.mT) @ whitened)
        diagonal = diagonal + lam[:, None] * whitened.square().sum(-2)
    ways, queries = episode.ways, slice(support, n)
    squared = _squared(rows[:, :ways], diagonal, prototypes, queries)
    # Y ⪯ A ⪯ (1 + tr γM0M̃)·M0⁻¹, so no distance is smaller than this; what rounding made smaller is lifted to it.
    shrinkage = 1 + strength.diagonal(dim1=-2, dim2=-1).sum(-1)
    floor = _squared(known_prior[:, :ways], prior_diagonal, prototypes, queries).clamp_min(0) / shrinkage[:, None, None]
    squared = torch.maximum(squared, floor)
    # Σ = XᵀX / (n-1), so xᵀΣy is the product of two rows of the Gram matrix.
    columns = gram[:, :, :n]
    mean_rows = prototypes @ columns
    covariance = (
        columns[:, queries].square().sum(-1)[..., None]
        - 2 * columns[:, queries] @ mean_rows.mT
        + mean_rows.square().sum(-1)[:, None]
    ).clamp_min(0) / max(n - 1, 1)
    return squared + settings.alpha * covariance, lam


def _gram(parts: list[Tensor], matrix: Tensor | None) -> Tensor:
    """Inner products (under a symmetric matrix) of points in parts ``[B, p_i, d]``, as ``[B, p, p]``.

    Blocks below the diagonal are mirrored, not computed: with the queries in two halves, a quarter less work.
    """
    left = parts if matrix is None else [part @ matrix for part in parts]
    blocks = [[first @ second.mT for second in parts[i:]] for i, first in enumerate(left)]
    rows = [torch.cat([blocks[j][i - j].mT for j in range(i)] + blocks[i], -1) for i in range(len(parts))]
    return torch.cat(rows, -2)


def _sum(features: Tensor) -> Tensor:
    return features.sum(1, keepdim=True, dtype=result_dtype(features))


def _squared(rows: Tensor, diagonal: Tensor, prototypes: Tensor, queries: slice) -> Tensor:
    """|x_q - p_c|² ``[B, Q, N]`` from ⟨p_c, x_j⟩ ``[B, N, p]``, ⟨x_j, x_j⟩ ``[B, p]`` and prototypes ``[B, N, p]``."""
    own = (rows * prototypes).sum(-1)
    return diagonal[:, queries, None] - 2 * rows[..., queries].mT + own[:, None]


# --- the moment route -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Moments:
    """matrix: M† ``[B, d, d]``; lam: λ ``[B]``; centre: mean point ``[B, 1, d]``; shrinkage: 1 + γ tr M0M̃ ``[B]``."""

    matrix: Tensor
    lam: Tensor
    centre: Tensor
    shrinkage: Tensor


def solve_moments(episode: Episode, settings: MetricSettings) -> _Moments:
    """Eq. 10 with d×d matrices; queries are visited in chunks, so memory does not grow with their number."""
    batch, dimension = len(episode.support), episode.support.shape[-1]
    compute = compute_dtype(episode.support)
    support = episode.support.to(compute)
    membership = episode.membership(compute)
    n = support.shape[1] + episode.query.shape[1]
    total = support.sum(1, keepdim=True)
    for chunk in _chunks(episode):
        total = total + chunk.to(compute).sum(1, keepdim=True)
    centre = total / n
    support = support - centre
    scatter = support.mT @ support
    for chunk in _chunks(episode):
        centred = chunk.to(compute) - centre
        scatter = scatter + centred.mT @ centred

    nearest = _nearest_queries(episode, centre, settings.k)
    index = nearest.reshape(batch, -1, 1).expand(-1, -1, dimension)
    neighbours = episode.query.gather(1, index).to(compute) - centre
    must = _must_link_rows(support, membership, neighbours.reshape(batch, support.shape[1], settings.k, dimension))
    identity = torch.eye(dimension, dtype=compute, device=support.device)
    prior = identity if settings.prior is None else settings.prior.to(support)
    prior_inverse = identity if settings.prior is None else _inverse(prior)
    link = settings.gamma * (must.mT @ must)
    matrix = prior_inverse + link
    shrinkage = 1 + (prior * link).sum((-2, -1))
    lam = support.new_full((batch,), settings.lam)
    if settings.lam > 0 and settings.gamma > 0:
        seen = None if settings.seen is None else _batched(settings.seen, batch).to(support) - centre
        cannot = math.sqrt(settings.gamma) * _cannot_link_rows(class_means(support, membership), seen)
        whitened = _whiten(matrix, cannot.mT)
        lam = _feasible(whitened.mT @ whitened, settings.lam)
        matrix = matrix - lam[:, None, None] * (cannot.mT @ cannot)
    metric = _inverse(matrix) + settings.alpha / max(n - 1, 1) * scatter
    return _Moments(metric, lam, centre, shrinkage)


def moment_distances(episode: Episode, settings: MetricSettings) -> tuple[Tensor, Tensor]:
    """Squared distances ``[B, Q, N]`` and λ ``[B]`` through M†."""
    moments = solve_moments(episode, settings)
    prototypes = episode.prototypes(moments.matrix.dtype) - moments.centre
    floor = 1 / moments.shrinkage[:, None, None]
    squared = []
    for chunk in _chunks(episode):
        points = chunk.to(prototypes) - moments.centre
        value = _quadratic(points, prototypes, moments.matrix)
        squared.append(torch.maximum(value, floor * _quadratic(points, prototypes, settings.prior).clamp_min(0)))
    return torch.cat(squared, 1), moments.lam


def _quadratic(points: Tensor, prototypes: Tensor, matrix: Tensor | None) -> Tensor:
    """(x - p)ᵀ M (x - p) for points ``[B, n, d]`` and prototypes ``[B, N, d]``, ``[B, n, N]``; None: M = I."""
    left = points if matrix is None else points @ matrix.to(points)
    right = prototypes if matrix is None else prototypes @ matrix.to(points)
    own = (right * prototypes).sum(-1)
    squared: Tensor = (left * points).sum(-1)[..., None] - 2 * left @ prototypes.mT + own[:, None]
    return squared


def _nearest_queries(episode: Episode, centre: Tensor, k: int) -> Tensor:
    """Indices of the k nearest queries of each support sample, ``[B, S, k]``; no gradient through the choice."""
    with torch.no_grad():
        support = episode.support.to(centre) - centre
        best = support.new_empty(*support.shape[:2], 0)
        found = torch.empty(*support.shape[:2], 0, dtype=torch.int64, device=support.device)
        start = 0
        for chunk in _chunks(episode):
            points = chunk.to(centre) - centre
            order = points.square().sum(-1)[:, None] - 2 * support @ points.mT
            index = torch.arange(start, start + chunk.shape[1], device=support.device).expand_as(order)
            best, found = torch.cat([best, order], -1), torch.cat([found, index], -1)
            best, keep = best.topk(min(k, best.shape[-1]), largest=False)
            found = found.gather(-1, keep)
            start += chunk.shape[1]
    return found


def _chunks(episode: Episode) -> tuple[Tensor, ...]:
    """The queries in pieces whose float64 copy, and whose distances to the support, stay within a fixed size."""
    batch, samples, dimension = episode.support.shape
    return torch.split(episode.query, max(_CHUNK_BYTES // (8 * batch * max(samples, dimension)), 1), dim=1)


# --- small algebra ----------------------------------------------------------------------------------------------------


def _whiten(matrix: Tensor, right: Tensor) -> Tensor:
    """F⁻¹·right with matrix = F Fᵀ (Cholesky)."""
    factor, _ = torch.linalg.cholesky_ex(matrix)
    solution: Tensor = torch.linalg.solve_triangular(factor, right, upper=False)
    return solution


def _inverse(matrix: Tensor) -> Tensor:
    """The inverse of a symmetric positive definite matrix; `cholesky_inverse` waits for the device, for a batch."""
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    whitened = _whiten(matrix, identity.expand_as(matrix))
    return whitened.mT @ whitened


def _plus_identity(matrix: Tensor) -> Tensor:
    return matrix + torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def safe_root(squared: Tensor) -> Tensor:
    """The square root, with gradient zero instead of infinity where a query is a prototype."""
    positive = squared > 0
    return torch.where(positive, torch.where(positive, squared, 1.0).sqrt(), 0.0)


def compute_dtype(features: Tensor) -> torch.dtype:
    return torch.float32 if features.device.type == "mps" else torch.float64


def result_dtype(features: Tensor) -> torch.dtype:
    return torch.float64 if features.dtype == torch.float64 else torch.float32


def _batched(tensor: Tensor, batch: int) -> Tensor:
    return tensor if tensor.ndim == 3 else tensor.expand(batch, -1, -1)
