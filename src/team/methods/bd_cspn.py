"""BD-CSPN: Liu, Song and Qin, "Prototype rectification for few-shot learning", ECCV 2020."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from team.checks import check_not_negative
from team.episode import Episode, class_means, result_dtype
from team.methods.base import Method


class BDCSPN(Method):
    """Cosine prototypes with their two biases diminished (BD): the cross-class one, then the intra-class one.

    All features are scaled to unit length first. Scores are cosines divided by the temperature.

    The authors published no code. ε = 10 is what the code of LaplacianShot and of α-TIM has for this method, where
    weights are a softmax over classes and every query is taken in; easyfsl has the softmax over samples, with ε = 1.
    For Z = 8 no code was found that a paper stands behind. The leaderboard lets validation classes choose both.

    epsilon: ε, how much nearer samples weigh more in a rectified prototype
    confident: Z, how many of its most similar queries each class takes in, at most; None takes all that chose it
    shift: whether to move the queries by the cross-class bias
    """

    transductive = True

    def __init__(
        self,
        *,
        epsilon: float = 10.0,
        confident: int | None = 8,
        shift: bool = True,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        check_not_negative(epsilon=epsilon)
        if confident is not None and confident < 1:
            raise ValueError(f"confident must be a number of queries per class, 1 or more, or None, not {confident}")
        self.epsilon, self.confident, self.shift = epsilon, confident, shift

    def log_probabilities(self, episode: Episode) -> Tensor:
        dtype = result_dtype(episode.support)
        support, query = unit(episode.support.to(dtype)), unit(episode.query.to(dtype))
        if self.shift:
            query = query + cross_class_bias(support, query)
        labelled = episode.membership(dtype)
        prototypes = self.rectified(support, labelled, query, class_means(support, labelled))
        return (cosine(query, prototypes) / self.temperature).log_softmax(-1)

    def rectified(self, support: Tensor, labelled: Tensor, query: Tensor, prototypes: Tensor) -> Tensor:
        """P'_n = Σ_i w_{i,n} X_{i,n} over support and pseudo-labelled queries, with w a softmax of ε cos(X, P_n).

        support: ``[B, S, d]``, labelled: ``[B, S, N]``, query: ``[B, Q, d]``, prototypes: ``[B, N, d]``, which the
        result replaces.
        """
        samples = torch.cat([support, query], -2)
        similarity = cosine(samples, prototypes)
        chosen = self.pseudo_labels(similarity[..., support.shape[-2] :, :].detach())
        members = torch.cat([labelled > 0, chosen], -2)
        weights = (self.epsilon * similarity).masked_fill(~members, -torch.inf).softmax(-2)
        return weights.mT @ unit(samples)

    def pseudo_labels(self, similarity: Tensor) -> Tensor:
        """Whether a query's nearest prototype is n and it is among the Z nearest of these, ``[B, Q, N]``.

        Equal similarities are treated alike, so that neither the order of queries nor that of classes matters.
        """
        nearest = similarity >= similarity.amax(-1, keepdim=True)
        if self.confident is None or self.confident >= similarity.shape[-2]:
            return nearest
        ranked = similarity.masked_fill(~nearest, -torch.inf).topk(self.confident, dim=-2).values
        return nearest & (similarity >= ranked[..., -1:, :])


def cross_class_bias(support: Tensor, query: Tensor) -> Tensor:
    """The mean support feature less the mean query feature, ``[B, 1, d]``; added to queries it removes the bias."""
    return support.mean(-2, keepdim=True) - query.mean(-2, keepdim=True)


def unit(features: Tensor) -> Tensor:
    """Features scaled to length one; zeros stay zeros, with a finite gradient."""
    return F.normalize(features, dim=-1, eps=1e-6)


def cosine(points: Tensor, centres: Tensor) -> Tensor:
    """cos(x, c) for points ``[B, n, d]`` and centres ``[B, N, d]``, as ``[B, n, N]``."""
    return unit(points) @ unit(centres).mT
