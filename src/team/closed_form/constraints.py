"""The parameters of Eq. 3-10, the pairs of Eq. 6 as rows of differences, and the largest λ that Eq. 8 bears."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsIndex

import torch
from torch import Tensor

from team.checks import check_not_negative
from team.episode import class_means

_MARGIN = 0.01  # Y keeps at least this fraction of A in every direction
_SQUARINGS = 12


@dataclass(frozen=True, eq=False)
class MetricSettings:
    """The parameters of Eq. 3-10.

    k: nearest samples without label (queries, unlabelled set) linked to each support sample; gamma, lam, alpha: γ, λ, α
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
        check_not_negative(gamma=self.gamma, lam=self.lam, alpha=self.alpha)


def must_link_rows(support: Tensor, membership: Tensor, neighbours: Tensor) -> Tensor:
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


def cannot_link_rows(prototypes: Tensor, seen: Tensor | None) -> Tensor:
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


def feasible(bound: Tensor, lam: float) -> Tensor:
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
