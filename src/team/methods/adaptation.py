"""What the methods that fit a classifier to each episode share: optimisers and gradients, written out by hand.

The losses here are softmax regressions, whose gradients are one line each. Written out they need no autograd graph, so
a method works under ``torch.no_grad()`` as it does in training, and a batch of episodes is one tensor. Every loss is a
sum over episodes of terms that share nothing, and both optimisers work on each number by itself, so fitting a batch
is fitting its episodes one by one.

Training through such a method is first-order: features receive gradients through the classifier's start and through
the scores, not through the path of the optimiser.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from team.checks import check_counts
from team.episode import Episode, result_dtype

Gradient = Callable[[Tensor], Tensor]


@torch.no_grad()
def adam(gradient: Gradient, start: Tensor, *, learning_rate: float, iterations: int) -> Tensor:
    """The change that Adam (Kingma and Ba, ICLR 2015; β = 0.9, 0.999, ε = 1e-8) makes to ``start``."""
    value, mean, square = start.detach().clone(), torch.zeros_like(start), torch.zeros_like(start)
    for step in range(1, iterations + 1):
        slope = gradient(value)
        mean.mul_(0.9).add_(slope, alpha=0.1)
        square.mul_(0.999).addcmul_(slope, slope, value=0.001)
        scale = (square / (1 - 0.999**step)).sqrt_().add_(1e-8)
        value.addcdiv_(mean, scale, value=-learning_rate / (1 - 0.9**step))
    return value - start


@torch.no_grad()
def momentum_descent(
    gradient: Gradient,
    start: Tensor,
    *,
    learning_rate: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    iterations: int,
) -> Tensor:
    """Where gradient descent ends; as in torch.optim.SGD, dampening leaves the first step alone."""
    value = start.detach().clone()
    velocity = torch.zeros_like(value)
    for step in range(iterations):
        slope = gradient(value).add(value, alpha=weight_decay)
        velocity.mul_(momentum).add_(slope, alpha=1 - dampening if step else 1.0)
        value.sub_(velocity, alpha=learning_rate)
    return value


def unit_features(episode: Episode) -> tuple[Tensor, Tensor]:
    """Support and query scaled to length one, in float32 at the least; a feature of zero stays zero."""
    dtype = result_dtype(episode.support)
    return F.normalize(episode.support.to(dtype), dim=-1), F.normalize(episode.query.to(dtype), dim=-1)


def cross_entropy_gradient(log_p: Tensor, membership: Tensor) -> Tensor:
    """d/d logits of the mean over samples of -log p(own class), for ``log_p`` and ``membership [B, S, N]``."""
    return (log_p.exp() - membership) / log_p.shape[-2]


def entropy_gradient(log_p: Tensor, *, marginal: float, conditional: float, alpha: float = 1.0) -> Tensor:
    """d/d logits of conditional · H_α(Y|X) - marginal · H_α(Y) of the queries, for ``log_p [B, Q, N]``.

    H_α(p) = (1 - Σ p^α) / (α - 1) is Tsallis' entropy, and Shannon's for α = 1. H_α(Y) is that of the mean prediction,
    H_α(Y|X) the mean of those of the predictions.
    """
    count = log_p.shape[-2]
    slope = -conditional * _entropy_slope(log_p, alpha)
    if marginal:
        log_marginal = log_p.logsumexp(-2, keepdim=True) - math.log(count)
        slope = slope + marginal * _entropy_slope(log_marginal, alpha)
    p = log_p.exp()
    return p * (slope - (p * slope).sum(-1, keepdim=True)) / count  # through the softmax


def _entropy_slope(log_p: Tensor, alpha: float) -> Tensor:
    """-dH_α/dp, less a constant, which the softmax would drop; bounded by -log p."""
    return log_p if alpha == 1 else torch.expm1((alpha - 1) * log_p) * (alpha / (alpha - 1))


def check_iterations(iterations: int) -> None:
    """Raise unless this is a number of iterations; zero leaves the classifier at its start."""
    check_counts(iterations=iterations)
