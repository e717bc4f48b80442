"""The closed form of Sec. 3.3: pair constraints, feasibility, and two exact routes to the distances.

Notation. The must-link pairs enter as rows D with M̃ = DᵀD, the cannot-link pairs as rows E with C̃ = EᵀE (Eq. 6), so

    A = M0⁻¹ + γ DᵀD,    Y = A - γλ EᵀE,    M† = Y⁻¹ + α Σ    (Eq. 9 and 10).

A is always positive definite; Y is when λ times the largest eigenvalue of γ E A⁻¹ Eᵀ stays below one. Where the given
λ is too large for that, the problem of Eq. 8 has no minimum, and λ is lowered for that episode (`feasible`).

Two exact routes give the same distances. In the *span* route every vector is written as a combination of the episode's
points, and all that is needed is their Gram matrix: no d×d matrix appears. In the *moment* route the d×d matrices are
sums over points, taken in chunks. Both compute in float64, whatever the input: the span route subtracts, and loses a
factor of at most 1 + γ·tr(M0 M̃) in relative precision, which float64 can spare and float32 cannot.

Everything here trusts its input and never waits for the device, so that it can be captured in a CUDA graph.
"""

from __future__ import annotations

from torch import Tensor

from team.closed_form.algebra import compute_dtype, safe_root
from team.closed_form.constraints import MetricSettings
from team.closed_form.moments import moment_distances, solve_moments, squared_distances
from team.closed_form.span import span_distances
from team.episode import Episode, result_dtype


def episode_distances(episode: Episode, settings: MetricSettings) -> tuple[Tensor, Tensor]:
    """d_M†(query, prototype) ``[B, Q, N]``, not squared, and the λ used ``[B]``, by the cheaper route."""
    dimension = episode.support.shape[-1]
    seen = 0 if settings.seen is None else settings.seen.shape[-2]
    points = episode.support.shape[-2] + episode.count_without_label + seen
    pairs = episode.support.shape[-2] * (1 + settings.k)
    route = span_distances if max(points, pairs) < dimension else moment_distances
    squared, lam = route(episode, settings)
    return safe_root(squared).to(result_dtype(episode.support)), lam


__all__ = [
    "MetricSettings",
    "compute_dtype",
    "episode_distances",
    "moment_distances",
    "safe_root",
    "solve_moments",
    "span_distances",
    "squared_distances",
]
