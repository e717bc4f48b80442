"""Sec. 3.3, the episodic-wise adaptive metric (EAM): the public functions. The algebra is in closed_form/."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from team.closed_form import MetricSettings, compute_dtype, episode_distances, solve_moments
from team.episode import Episode, check_episode, check_features, result_dtype

_LARGEST_NORM = 1e7


@dataclass(frozen=True, eq=False)
class AdaptedMetric:
    """M† of one episode or of a batch, and how it came about.

    matrix: M† ``[..., d, d]``
    projection: L with M† = LᵀL, ``[..., d, d]``: distances under M† are Euclidean distances between vectors L·x.
        It comes from M† before that is rounded to float32, where large features can cost M† its small eigenvalues.
    lam: the λ it was solved with ``[...]``; lowered: bool ``[...]``, whether that is less than what was asked for
    """

    matrix: Tensor
    projection: Tensor
    lam: Tensor
    lowered: Tensor


def solve_metric(
    support: Tensor,
    labels: Tensor,
    query: Tensor,
    *,
    k: int = 5,
    gamma: float = 0.2,
    lam: float = 0.01,
    alpha: float = 2.0,
    prior: Tensor | None = None,
    seen: Tensor | None = None,
) -> AdaptedMetric:
    """The metric of Eq. 10 for one episode or a batch, with its projection L and the λ that was used.

    support: ``[S, d]`` or ``[B, S, d]``, labels: ``[S]`` or ``[B, S]`` in 0..N-1, query: ``[Q, d]`` or ``[B, Q, d]``
    k: nearest queries linked to each support sample (the paper does not give it); gamma, lam, alpha: its γ, λ, α
    prior: M0, positive definite, ``[d, d]`` or one per episode; None is the identity
    seen: prototypes of training classes ``[T, d]`` or ``[B, T, d]``, for the cannot-link pairs

    Where λ is too large for Eq. 8 to have a minimum it is lowered, with a warning; ``lowered`` says for which episodes.
    """
    episode, settings = _door(support, labels, query, MetricSettings(k, gamma, lam, alpha, prior, seen))
    solution = solve_moments(episode, settings)
    factor, _ = torch.linalg.cholesky_ex(solution.matrix)
    dtype = result_dtype(support)
    found = (solution.matrix.to(dtype), factor.mT.to(dtype), solution.lam, _report_lowered(solution.lam, lam))
    return AdaptedMetric(*(tensor[0] for tensor in found)) if support.ndim == 2 else AdaptedMetric(*found)


def adaptive_metric(
    support: Tensor,
    labels: Tensor,
    query: Tensor,
    *,
    k: int = 5,
    gamma: float = 0.2,
    lam: float = 0.01,
    alpha: float = 2.0,
    prior: Tensor | None = None,
    seen: Tensor | None = None,
) -> Tensor:
    """M† of Eq. 10, ``[..., d, d]``; arguments as for :func:`solve_metric`."""
    episode, settings = _door(support, labels, query, MetricSettings(k, gamma, lam, alpha, prior, seen))
    solution = solve_moments(episode, settings)
    _report_lowered(solution.lam, lam)
    matrix = solution.matrix.to(result_dtype(support))
    return matrix[0] if support.ndim == 2 else matrix


def metric_distances(
    support: Tensor,
    labels: Tensor,
    query: Tensor,
    *,
    k: int = 5,
    gamma: float = 0.2,
    lam: float = 0.01,
    alpha: float = 2.0,
    prior: Tensor | None = None,
    seen: Tensor | None = None,
) -> Tensor:
    """d_M†(query, prototype) of Eq. 3, not squared, ``[..., Q, N]``; arguments as for :func:`solve_metric`.

    The d×d metric is formed only where that is the cheaper route.
    """
    episode, settings = _door(support, labels, query, MetricSettings(k, gamma, lam, alpha, prior, seen))
    distances, used = episode_distances(episode, settings)
    _report_lowered(used, lam)
    return distances[0] if support.ndim == 2 else distances


def check_settings(settings: MetricSettings, episode: Episode) -> None:
    """Raise unless features are of usable size, prior and seen prototypes fit, and the prior is positive definite."""
    batch, dimension = len(episode.support), episode.support.shape[-1]
    parts = (episode.support, episode.without_label())
    largest = max(float(part.detach().double().norm(dim=-1).max()) for part in parts)
    if largest > _LARGEST_NORM:
        raise ValueError(
            f"a feature vector has norm {largest:.3g}; beyond {_LARGEST_NORM:.0e} float64 cannot resolve the metric: "
            "divide the features by a constant"
        )
    if (seen := settings.seen) is not None:
        check_features("seen", seen)
        if seen.shape[-1] != dimension or (seen.ndim == 3 and len(seen) != batch):
            raise ValueError(
                f"seen prototypes must be [T, {dimension}] or [{batch}, T, {dimension}], not {list(seen.shape)}"
            )
    if (prior := settings.prior) is None:
        return
    check_features("prior", prior)
    if prior.shape not in {(dimension, dimension), (batch, dimension, dimension)}:
        raise ValueError(f"prior must be [{dimension}, {dimension}] or one such per episode, not {list(prior.shape)}")
    if not torch.allclose(prior, prior.mT, rtol=1e-4, atol=1e-6 * float(prior.abs().max())):
        raise ValueError("prior must be symmetric; use (prior + prior.mT) / 2")
    if bool(torch.linalg.cholesky_ex(prior.to(compute_dtype(prior))).info.any()):
        raise ValueError("prior is not positive definite; add a small multiple of the identity")


def _door(support: Tensor, labels: Tensor, query: Tensor, settings: MetricSettings) -> tuple[Episode, MetricSettings]:
    episode = check_episode(support, labels, query)
    queries = episode.query.shape[-2]
    if settings.k > queries:
        raise ValueError(f"k is {settings.k}, but an episode has only {queries} queries; choose k up to that")
    check_settings(settings, episode)
    return episode, settings


def _report_lowered(lam: Tensor, asked: float) -> Tensor:
    lowered: Tensor = lam < asked
    if bool(lowered.any()):
        warnings.warn(
            f"λ = {asked} makes Eq. 8 unbounded for {int(lowered.sum())} of {lowered.numel()} episodes (features of "
            f"large norm); it was lowered there, to {float(lam.min()):.3g} at the least; see team.solve_metric",
            stacklevel=3,
        )
    return lowered
