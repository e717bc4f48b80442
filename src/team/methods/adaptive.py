"""The adaptive metric (Sec. 3.3) as an option of other methods: ``create_method("matchingnet", metric="adaptive")``."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from team.closed_form import MetricSettings, compute_dtype, solve_moments
from team.episode import Episode, result_dtype
from team.methods.base import Method
from team.metric import check_settings


class AdaptiveMetric(Method):
    """A method whose Euclidean distances and cosines become those under M† of the episode (Eq. 10).

    It is given the features L·x with M† = LᵀL, so nothing in the method itself changes. Distances grow with M†: choose
    the temperature anew. Settings are those of :func:`team.adaptive_metric`; k is lowered to the number of queries.
    """

    transductive = True

    def __init__(self, method: Method, settings: MetricSettings) -> None:
        nn.Module.__init__(self)  # the temperature is that of the method
        self.method, self.settings = method, settings

    @property
    def log_temperature(self) -> nn.Parameter:  # type: ignore[override]
        return self.method.log_temperature

    def check(self, episode: Episode) -> None:
        check_settings(self.settings, episode)
        self.method.check(episode)

    def log_probabilities(self, episode: Episode) -> Tensor:
        return self.method.log_probabilities(adapted(episode, self.settings))


def adapted(episode: Episode, settings: MetricSettings) -> Episode:
    """The episode with features L·x: Euclidean distances of these are distances d_M† of the given ones.

    Where there are fewer points than features they are first written in a basis of their span, which loses nothing. The
    basis takes no part in the gradient: leaving the span changes no inner product, to first order.
    """
    dtype, samples = result_dtype(episode.support), episode.support.shape[-2]
    points = torch.cat([episode.support, episode.query], -2).to(compute_dtype(episode.support))
    if points.shape[-2] < points.shape[-1] and settings.prior is None and settings.seen is None:
        points = points @ torch.linalg.qr(points.detach().mT).Q
    episode = replace(episode, support=points[:, :samples], query=points[:, samples:])
    settings = replace(settings, k=min(settings.k, episode.query.shape[-2]))
    factor, _ = torch.linalg.cholesky_ex(solve_moments(episode, settings).matrix)
    points = (points @ factor).to(dtype)
    return replace(episode, support=points[:, :samples], query=points[:, samples:])
