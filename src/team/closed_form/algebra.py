"""Small linear algebra that never waits for the device, and the precision things are computed in."""

from __future__ import annotations

import torch
from torch import Tensor


def whiten(matrix: Tensor, right: Tensor) -> Tensor:
    """F⁻¹·right with matrix = F Fᵀ (Cholesky)."""
    factor, _ = torch.linalg.cholesky_ex(matrix)
    solution: Tensor = torch.linalg.solve_triangular(factor, right, upper=False)
    return solution


def inverse(matrix: Tensor) -> Tensor:
    """The inverse of a symmetric positive definite matrix; `cholesky_inverse` waits for the device, for a batch."""
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    whitened = whiten(matrix, identity.expand_as(matrix))
    return whitened.mT @ whitened


def plus_identity(matrix: Tensor) -> Tensor:
    return matrix + torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def safe_root(squared: Tensor) -> Tensor:
    """The square root, with gradient zero instead of infinity where a query is a prototype."""
    positive = squared > 0
    return torch.where(positive, torch.where(positive, squared, 1.0).sqrt(), 0.0)


def compute_dtype(features: Tensor) -> torch.dtype:
    return torch.float32 if features.device.type == "mps" else torch.float64


def batched(tensor: Tensor, batch: int) -> Tensor:
    return tensor if tensor.ndim == 3 else tensor.expand(batch, -1, -1)
