"""Layers of the methods that have learned parts: drawn from a seed, and used in the precision of the features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from team.episode import Episode


def seeded_linear(
    inputs: int, outputs: int, generator: torch.Generator, *, deviation: float | None = None
) -> nn.Linear:
    """A linear layer whose weights are drawn from the generator and from no other, with biases of zero.

    deviation: of the weights; by default sqrt(2 / inputs), which keeps the size of what passes through a ReLU
    """
    layer = nn.Linear(inputs, outputs, device="meta")
    deviation = math.sqrt(2 / inputs) if deviation is None else deviation
    layer.weight = nn.Parameter(deviation * torch.randn(outputs, inputs, generator=generator))
    layer.bias = nn.Parameter(torch.zeros(outputs))
    return layer


def linear(layer: nn.Linear, points: Tensor) -> Tensor:
    """The layer in the precision of ``points [..., inputs]``."""
    return F.linear(points, layer.weight.to(points), layer.bias.to(points))


class Perceptron(nn.Module):
    """Linear layers with leaky ReLUs between them, ``[..., widths[0]]`` -> ``[..., widths[-1]]``.

    slope: of the ReLUs below zero; last: deviation of the last layer's weights, 0 for answers that start at zero
    """

    def __init__(
        self, widths: Sequence[int], generator: torch.Generator, *, slope: float = 0.0, last: float | None = None
    ) -> None:
        super().__init__()
        self.slope = slope
        count = len(widths) - 1
        self.layers = nn.ModuleList(
            seeded_linear(*pair, generator, deviation=last if number == count else None)
            for number, pair in enumerate(pairwise(widths), start=1)
        )

    def forward(self, points: Tensor) -> Tensor:
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Linear)
            points = linear(layer, points if number == 0 else F.leaky_relu(points, self.slope))
        return points


def check_width(name: str, dim: int | None, episode: Episode) -> None:
    """Raise unless the features of the episode are as wide as the method's learned weights."""
    width = episode.support.shape[-1]
    if dim is None:
        raise ValueError(
            f"{name} has learned weights, made for features of one width: create it with dim={width} and train it, "
            "or load a model trained with it (Model.create gives the width of the network by itself)"
        )
    if dim != width:
        raise ValueError(f"{name} was made for {dim} features per sample (its option dim), not for {width}")
