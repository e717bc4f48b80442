"""Blends of two images and of their labels: Zhang, Cissé, Dauphin and Lopez-Paz, "mixup: beyond empirical risk
minimization", ICLR 2018, with their α = 1 and the larger part always an image's own."""

from __future__ import annotations

import torch
from torch import Tensor


def draw_parts(count: int, share: float, generator: torch.Generator) -> Tensor:
    """How much of each of ``count`` images is its own ``[count]``: all of it, or, for a share of them, 0.5 to 1."""
    u = torch.rand(2, count, generator=generator)
    return torch.where(u[0] < share, 1 - u[1] / 2, 1.0)


def blend(values: Tensor, parts: Tensor) -> Tensor:
    """Values ``[n, ...]`` of images or labels, each with the one before it; parts ``[n]`` are their own."""
    parts = parts.reshape(-1, *[1] * (values.ndim - 1))
    return parts * values + (1 - parts) * values.roll(1, 0)
