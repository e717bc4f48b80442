"""TEAM: Qiao et al., "Transductive episodic-wise adaptive metric for few-shot learning", ICCV 2019."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from team.closed_form import MetricSettings, episode_distances, safe_root, solve_moments, squared_distances
from team.episode import Episode, class_means, result_dtype
from team.methods.base import Method
from team.methods.protonet import squared_euclidean
from team.metric import check_settings
from team.similarity import log_similarity


class TEAM(Method):
    """The paper's method; each of its three parts can be switched off, which gives the rows of the ablation.

    An unlabelled set makes it TEAM-semi, of which the paper says only that it uses more unlabelled data. Here those
    samples join the queries in the covariance and as nearest neighbours of the support, and then refine the prototypes
    as in Ren et al. (ICLR 2018), with their similarity, in both directions, as the part they have in each class.

    mixing: task internal mixing while training (Sec. 3.2)
    metric: the adaptive metric (Sec. 3.3); off, the Euclidean distance
    bidirectional: the product of both directions of similarity (Sec. 3.4); off, Eq. 12 alone
    squared: use d² in place of d; with all three parts off this is the baseline, ProtoNet
    k, gamma, lam, alpha, prior, seen: see :func:`team.adaptive_metric`; k is lowered to how many samples lack a label
    """

    def __init__(
        self,
        *,
        mixing: bool = True,
        metric: bool = True,
        bidirectional: bool = True,
        squared: bool = False,
        k: int = 5,
        gamma: float = 0.2,
        lam: float = 0.01,
        alpha: float = 2.0,
        prior: Tensor | None = None,
        seen: Tensor | None = None,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        self.mixing, self.metric, self.bidirectional, self.squared = mixing, metric, bidirectional, squared
        self.settings = MetricSettings(k=k, gamma=gamma, lam=lam, alpha=alpha, prior=prior, seen=seen)

    @property
    def transductive(self) -> bool:  # type: ignore[override]
        return self.metric or self.bidirectional

    @property
    def semi_supervised(self) -> bool:  # type: ignore[override]
        return self.metric

    def check(self, episode: Episode) -> None:
        if self.metric:
            check_settings(self.settings, episode)

    def log_probabilities(self, episode: Episode) -> Tensor:
        return self._answers(self._distances(episode))

    def _answers(self, distances: Tensor) -> Tensor:
        """Log-probabilities ``[B, n, N]`` of samples at these distances from the prototypes."""
        scores = -(distances.square() if self.squared else distances) / self.temperature
        return (log_similarity(scores) if self.bidirectional else scores).log_softmax(-1)

    def _distances(self, episode: Episode) -> Tensor:
        if not self.metric:
            return safe_root(squared_euclidean(episode.query, episode.prototypes()))
        settings = replace(self.settings, k=min(self.settings.k, episode.count_without_label))
        if episode.unlabelled is not None:
            return self._refined_distances(episode, episode.unlabelled, settings)
        distances, _ = episode_distances(episode, settings)
        return distances

    def _refined_distances(self, episode: Episode, unlabelled: Tensor, settings: MetricSettings) -> Tensor:
        """From the queries to prototypes that are means over the support and the unlabelled set."""
        moments = solve_moments(episode, settings)
        compute = moments.matrix.dtype

        def distances(points: Tensor, prototypes: Tensor) -> Tensor:
            return safe_root(squared_distances(moments, settings.prior, points, prototypes))

        parts = self._answers(distances(unlabelled, episode.prototypes(compute))).exp()
        samples = torch.cat([episode.support, unlabelled], -2).to(compute)
        refined = class_means(samples, torch.cat([episode.membership(compute), parts], -2))
        return distances(episode.query, refined).to(result_dtype(episode.support))
