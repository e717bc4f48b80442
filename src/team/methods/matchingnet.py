"""Matching networks: Vinyals et al., "Matching networks for one shot learning", NeurIPS 2016."""

from __future__ import annotations

from torch import Tensor

from team.episode import Episode
from team.methods.adaptation import unit_features
from team.methods.base import Method


class MatchingNet(Method):
    """Labels of the support, averaged by the attention each query pays to its samples.

    The attention is a softmax over the support of cosine similarities, and p(class | query) = Σ_i a(query, x_i) y_i
    (the paper's Eq. 1). Features are used as they are given: the paper's full context embeddings, recurrent
    networks that see the whole support, are part of a trained network and not of this formula. The cosines are
    divided by the temperature, which is 1 in the paper.
    """

    transductive = False

    def __init__(self, *, temperature: float = 1.0, learn_temperature: bool = False) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)

    def log_probabilities(self, episode: Episode) -> Tensor:
        support, query = unit_features(episode)
        log_attention = (query @ support.mT / self.temperature).log_softmax(-1)
        return log_sum_by_class(log_attention, episode)


def log_sum_by_class(logarithms: Tensor, episode: Episode) -> Tensor:
    """log of the sums of exp(``logarithms [B, Q, S]``) over each class's support samples, ``[B, Q, N]``.

    Each class is summed relative to its own largest term: none can vanish, and no tensor is as large as Q·S·N.
    """
    owners = episode.labels[:, None, :].expand_as(logarithms)
    fixed = logarithms.detach()
    smallest = fixed.amin(-1, keepdim=True).expand(*fixed.shape[:-1], episode.ways)
    largest = smallest.scatter_reduce(-1, owners, fixed, "amax")
    relative = (logarithms - largest.gather(-1, owners)).exp()
    return (relative @ episode.membership(relative.dtype)).log() + largest
