"""Prototypical networks: Snell, Swersky and Zemel, "Prototypical networks for few-shot learning", NeurIPS 2017."""

from __future__ import annotations

from torch import Tensor

from team.closed_form import safe_root
from team.episode import Episode
from team.methods.base import Method


class ProtoNet(Method):
    """A softmax over negative distances to class means; squared ones as in the paper, or plain Euclidean ones."""

    transductive = False

    def __init__(self, *, squared: bool = True, temperature: float = 1.0, learn_temperature: bool = False) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        self.squared = squared

    def log_probabilities(self, episode: Episode) -> Tensor:
        distances = squared_euclidean(episode.query, episode.prototypes())
        scores = -(distances if self.squared else safe_root(distances))
        return (scores / self.temperature).log_softmax(-1)


def squared_euclidean(points: Tensor, centres: Tensor) -> Tensor:
    """|x - c|² for points ``[B, n, d]`` and centres ``[B, N, d]``, as ``[B, n, N]``, never negative."""
    middle = centres.mean(-2, keepdim=True)  # distances do not change, the numbers subtracted below become small
    points, centres = points.to(centres) - middle, centres - middle
    squares = points.square().sum(-1)[..., None] + centres.square().sum(-1)[..., None, :]
    return (squares - 2 * points @ centres.mT).clamp_min(0)
