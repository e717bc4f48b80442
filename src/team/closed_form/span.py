"""The span route: squared distances from the Gram matrix of an episode's points; no d×d matrix is formed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from team.closed_form.algebra import batched, compute_dtype, plus_identity, whiten
from team.closed_form.constraints import MetricSettings, cannot_link_rows, feasible, must_link_rows
from team.episode import Episode, class_means, result_dtype


def span_distances(episode: Episode, settings: MetricSettings) -> tuple[Tensor, Tensor]:
    """Squared distances ``[B, Q, N]`` and λ ``[B]`` from inner products of the episode's p points alone."""
    others = episode.without_label()
    support, query = episode.support.shape[-2], episode.query.shape[-2]
    batch, n = len(episode.support), support + others.shape[-2]
    compute = compute_dtype(episode.support)
    centre = (_sum(episode.support) + _sum(others)) / n
    parts = [episode.support, *torch.split(others, (others.shape[-2] + 1) // 2, dim=1)]
    if settings.seen is not None:
        parts.append(batched(settings.seen, batch).to(episode.support.device))
    parts = [part.to(compute, copy=True).sub_(centre) for part in parts]
    gram = _gram(parts, None)
    prior_gram = gram if settings.prior is None else _gram(parts, settings.prior.to(gram))

    with torch.no_grad():  # |x_j|² - 2 x_i·x_j orders the other samples x_j by distance to a support sample x_i
        order = gram.diagonal(dim1=-2, dim2=-1)[:, None, support:n] - 2 * gram[:, :support, support:n]
        nearest = order.topk(settings.k, largest=False).indices

    # From here on a vector is its coefficients over the points: point i is row i of the identity.
    identity = torch.eye(gram.shape[1], dtype=gram.dtype, device=gram.device)
    membership = episode.membership(gram.dtype)
    own = identity[:support].expand(batch, -1, -1)
    prototypes = class_means(own, membership)
    must = math.sqrt(settings.gamma) * must_link_rows(own, membership, identity[support + nearest])
    products = must @ prior_gram
    strength = products @ must.mT
    whitened = whiten(plus_identity(strength), products)
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
        cannot = math.sqrt(settings.gamma) * cannot_link_rows(own[:, : episode.ways], seen)
        products = cannot @ rows
        bound = products @ (cannot @ known).mT
        lam = feasible(bound, settings.lam)
        scale = lam[:, None, None]
        whitened = whiten(plus_identity(-scale * bound), products)
        rows = rows + scale * ((known @ whitened.mT) @ whitened)
        diagonal = diagonal + lam[:, None] * whitened.square().sum(-2)
    ways, queries = episode.ways, slice(support, support + query)
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

    Blocks below the diagonal are mirrored, not computed: with the unlabelled ones in two halves, a quarter less work.
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
