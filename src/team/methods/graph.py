"""Neighbours of points, as the graph methods (LaplacianShot, label propagation) use them."""

from __future__ import annotations

import torch
from torch import Tensor

from team.methods.protonet import squared_euclidean


def nearest_neighbours(points: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """|x_i - x_j|² ``[B, n, n]``, whether j is among the k nearest others of i, and the rounding error of the squares.

    points: ``[B, n, d]``. k is lowered to n - 1. A point is no neighbour of itself. Points as far away as the k-th
    nearest, up to rounding, are all neighbours, so that duplicated images do not make the order of points matter. No
    gradient flows through the choice.
    """
    squares = squared_euclidean(points, points)
    with torch.no_grad():
        norms = (points - points.mean(-2, keepdim=True)).square().sum(-1)
        rounding = 16 * torch.finfo(points.dtype).eps * norms.amax(-1)[..., None, None]
        others = squares.masked_fill(torch.eye(points.shape[-2], dtype=torch.bool, device=points.device), torch.inf)
        k = min(k, points.shape[-2] - 1)
        if k == 0:
            return squares, torch.zeros_like(squares, dtype=torch.bool), rounding
        farthest = others.topk(k, largest=False).values[..., -1:]
        return squares, others <= farthest + rounding, rounding
