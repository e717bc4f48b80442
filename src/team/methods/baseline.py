"""Baseline and Baseline++: Chen et al., "A closer look at few-shot classification", ICLR 2019.

Both fit a new head to the support by gradient descent on the mean cross-entropy, features being fixed. The authors'
code draws the head's start and its mini-batches of 4 at random, which ``seed`` does too. Without one, each iteration
takes the whole support, and the start is the same every time, so that equal episodes get equal answers and the order
of samples or the names of classes change nothing; with one shot this makes ``baseline++`` a few points better.

Started so, every class weight is at all times a combination w_k = Σ_i a_ik x_i of support features: gradients are, and
weight decay and momentum keep it so. The coefficients a ``[B, S, N]`` are what is fitted.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from team.checks import check_not_negative, check_positive
from team.episode import Episode, result_dtype
from team.methods.adaptation import (
    Gradient,
    check_iterations,
    cross_entropy_gradient,
    momentum_descent,
    unit_features,
)
from team.methods.base import Method
from team.seeding import generator

_BATCH = 4  # samples in a mini-batch of the authors' code
_SHORTEST = 1e-6  # a class weight shorter than this has no direction to speak of


class Baseline(Method):
    """A linear head w_k·x + b_k, which starts at zero: the centre of the authors' random start.

    iterations, learning_rate, momentum, dampening, weight_decay: of gradient descent
    seed: None for the whole support at once; a number for the authors' random start and mini-batches, of which each
        iteration then goes through all
    """

    transductive = False

    def __init__(
        self,
        *,
        iterations: int = 100,
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        dampening: float = 0.9,
        weight_decay: float = 0.001,
        seed: int | None = None,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        check_iterations(iterations)
        check_positive(learning_rate=learning_rate)
        check_not_negative(momentum=momentum, dampening=dampening, weight_decay=weight_decay)
        self.iterations, self.learning_rate, self.weight_decay = iterations, learning_rate, weight_decay
        self.momentum, self.dampening, self.seed = momentum, dampening, seed

    def log_probabilities(self, episode: Episode) -> Tensor:
        support, query = self._features(episode)
        membership = episode.membership(support.dtype)
        if self.seed is not None:
            return self._scores_of_head(query, self._by_batches(support.detach(), membership)).log_softmax(-1)
        coefficients = self._descend(
            lambda current: self._gradient(current, support.detach(), membership), self._start(membership), 1
        )
        return self._scores(query, support.mT @ coefficients).log_softmax(-1)

    def _descend(self, gradient: Gradient, start: Tensor, batches: int) -> Tensor:
        return momentum_descent(
            gradient,
            start,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            dampening=self.dampening,
            weight_decay=self.weight_decay,
            iterations=self.iterations * batches,
        )

    def _by_batches(self, support: Tensor, membership: Tensor) -> Tensor:
        """The head ``[B, N, d]`` that mini-batches give; each episode has a start and mini-batches of its own."""
        random = generator(int(self.seed or 0), "head")
        episodes, count, dimension = support.shape
        start = self._random_head((episodes, membership.shape[-1], dimension), random).to(support)
        orders = torch.rand(self.iterations, episodes, count, generator=random).argsort(-1).to(support.device)
        batches = iter([chosen[..., None] for order in orders for chosen in order.split(_BATCH, -1)])

        def gradient(head: Tensor) -> Tensor:
            chosen = next(batches)
            return self._head_gradient(head, *(torch.take_along_dim(part, chosen, 1) for part in (support, membership)))

        return self._descend(gradient, start, -(-count // _BATCH))

    def _random_head(self, shape: tuple[int, int, int], random: torch.Generator) -> Tensor:
        """As `torch.nn.Linear` begins, ``[B, N, d]``; the last feature is the constant one of b_k."""
        bound = max(shape[-1] - 1, 1) ** -0.5
        return torch.empty(shape).uniform_(-bound, bound, generator=random)

    def _scores_of_head(self, points: Tensor, head: Tensor) -> Tensor:
        """``points [B, n, d]``, ``head [B, N, d]`` -> ``[B, n, N]``"""
        return points @ head.mT / self.temperature

    def _head_gradient(self, head: Tensor, support: Tensor, membership: Tensor) -> Tensor:
        error = cross_entropy_gradient(self._scores_of_head(support, head).log_softmax(-1), membership)
        return (error / self.temperature).mT @ support

    def _features(self, episode: Episode) -> tuple[Tensor, Tensor]:
        """Support and query; a last feature of one makes b_k a weight like the others, decay included."""
        dtype = result_dtype(episode.support)
        support, query = (F.pad(x.to(dtype), (0, 1), value=1.0) for x in (episode.support, episode.query))
        return support, query

    def _start(self, membership: Tensor) -> Tensor:
        return torch.zeros_like(membership)

    def _scores(self, points: Tensor, weights: Tensor) -> Tensor:
        """``points [B, n, d]``, ``weights [B, d, N]`` -> ``[B, n, N]``"""
        return points @ weights / self.temperature

    def _gradient(self, coefficients: Tensor, support: Tensor, membership: Tensor) -> Tensor:
        """Coefficients of the gradient with respect to the weights, ``[B, S, N]``."""
        log_p = self._scores(support, support.mT @ coefficients).log_softmax(-1)
        return cross_entropy_gradient(log_p, membership) / self.temperature


class BaselinePP(Baseline):
    """A cosine head, scores cos(x, w_k) / temperature, which starts at the class means of features of length one.

    Zero has no direction, so a start must be chosen, and the means favour no class. Each weight is free in length and
    used for its direction. The default temperature is 1/2: the authors' code multiplies cosines by 2.
    Other options are those of :class:`Baseline`.
    """

    def __init__(
        self,
        *,
        iterations: int = 100,
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        dampening: float = 0.9,
        weight_decay: float = 0.001,
        seed: int | None = None,
        temperature: float = 0.5,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(
            iterations=iterations,
            learning_rate=learning_rate,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            seed=seed,
            temperature=temperature,
            learn_temperature=learn_temperature,
        )

    def _features(self, episode: Episode) -> tuple[Tensor, Tensor]:
        return unit_features(episode)

    def _start(self, membership: Tensor) -> Tensor:
        return membership / membership.sum(-2, keepdim=True)

    def _scores(self, points: Tensor, weights: Tensor) -> Tensor:
        return points @ F.normalize(weights, dim=-2, eps=_SHORTEST) / self.temperature

    def _gradient(self, coefficients: Tensor, support: Tensor, membership: Tensor) -> Tensor:
        """d cos(x, w) / dw = (x - cos(x, w) w/|w|) / |w|: a part along each sample, and one along the weight."""
        weights = support.mT @ coefficients
        length = torch.linalg.vector_norm(weights, dim=-2, keepdim=True).clamp_min(_SHORTEST)
        cosines = support @ (weights / length)
        error = cross_entropy_gradient((cosines / self.temperature).log_softmax(-1), membership)
        along = (error * cosines).sum(-2, keepdim=True) / length
        gradient: Tensor = (error - along * coefficients) / (length * self.temperature)
        return gradient

    def _random_head(self, shape: tuple[int, int, int], random: torch.Generator) -> Tensor:
        """Directions ``[B, N, d]`` as `torch.nn.Linear` begins and, as the last of ``[B, N, d + 1]``, their lengths."""
        bound = shape[-1] ** -0.5
        directions = torch.empty(shape).uniform_(-bound, bound, generator=random)
        return torch.cat([directions, torch.linalg.vector_norm(directions, dim=-1, keepdim=True)], -1)

    def _scores_of_head(self, points: Tensor, head: Tensor) -> Tensor:
        """g_k cos(x, v_k) / temperature: the authors' code learns a length g_k beside each direction v_k."""
        directions, lengths = head[..., :-1], head[..., -1]
        cosines = points @ F.normalize(directions, dim=-1, eps=_SHORTEST).mT
        return cosines * lengths[..., None, :] / self.temperature

    def _head_gradient(self, head: Tensor, support: Tensor, membership: Tensor) -> Tensor:
        error = cross_entropy_gradient(self._scores_of_head(support, head).log_softmax(-1), membership)
        error = error / self.temperature
        norms = torch.linalg.vector_norm(head[..., :-1], dim=-1, keepdim=True).clamp_min(_SHORTEST)
        directions, lengths = head[..., :-1] / norms, head[..., -1:]
        along = (error * (support @ directions.mT)).sum(-2)[..., None]
        across = (error.mT @ support - along * directions) * lengths / norms
        return torch.cat([across, along], -1)
