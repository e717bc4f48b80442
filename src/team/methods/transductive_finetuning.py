"""Transductive fine-tuning: Dhillon et al., "A baseline for few-shot image classification", ICLR 2020."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from team.checks import check_not_negative, check_positive
from team.episode import Episode, class_means
from team.methods.adaptation import (
    adam,
    check_iterations,
    cross_entropy_gradient,
    entropy_gradient,
    unit_features,
)
from team.methods.base import Method


class TransductiveFinetuning(Method):
    """A cosine head, fitted to the labels of the support and made confident on the queries.

    The head gives feature x of length one the logits w_k·x + b_k. By the paper's support-based
    initialisation, w_k starts as the mean feature of its class, scaled to length one, and b_k as 0. Adam then minimises
    the mean cross-entropy of the support plus the mean Shannon entropy of the query predictions.

    entropy_weight: of the queries' entropy, 1 in the paper; 0 fits the support alone, still from its head
    iterations: 25, as in the paper
    learning_rate: the paper's 5e-5, at which it moves the whole network; here features are fixed and only the head
        moves. Faster is worse: nothing in the loss asks for several classes. On the validation classes of miniImageNet
        and CUB 1e-4 cost up to 1 point and 1e-3 between 6 and 8
    """

    transductive = True

    def __init__(
        self,
        *,
        entropy_weight: float = 1.0,
        iterations: int = 25,
        learning_rate: float = 5e-5,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        check_not_negative(entropy_weight=entropy_weight)
        check_positive(learning_rate=learning_rate)
        check_iterations(iterations)
        self.entropy_weight, self.iterations, self.learning_rate = entropy_weight, iterations, learning_rate

    def log_probabilities(self, episode: Episode) -> Tensor:
        support, query = unit_features(episode)
        membership = episode.membership(support.dtype)
        start = F.pad(F.normalize(class_means(support, membership), dim=-1), (0, 1))  # the last column is b
        support, query = F.pad(support, (0, 1), value=1.0), F.pad(query, (0, 1), value=1.0)
        head = start + self._fit(support.detach(), membership, query.detach(), start.detach())
        return (query @ head.mT / self.temperature).log_softmax(-1)

    def _fit(self, support: Tensor, membership: Tensor, query: Tensor, start: Tensor) -> Tensor:
        """The change of the head from its start, ``[B, N, d + 1]``."""
        points, shots, temperature = torch.cat([support, query], -2), support.shape[-2], self.temperature.detach()

        def gradient(head: Tensor) -> Tensor:
            log_p = (points @ head.mT / temperature).log_softmax(-1)
            labelled = cross_entropy_gradient(log_p[:, :shots], membership)
            unlabelled = entropy_gradient(log_p[:, shots:], marginal=0.0, conditional=self.entropy_weight)
            return torch.cat([labelled, unlabelled], -2).mT @ points / temperature

        return adam(gradient, start, learning_rate=self.learning_rate, iterations=self.iterations)
