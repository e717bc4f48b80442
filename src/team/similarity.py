"""Sec. 3.4, bi-directional similarity (Bi-SIM), in log space."""

from __future__ import annotations

import torch
from torch import Tensor


def bidirectional_log_similarity(distances: Tensor) -> Tensor:
    """log s_{i<->c} = log s_{i->c} + log s_{c->i} (Eq. 12, Eq. 13 and the text below them).

    distances: d(x_i, p_c), not squared, ``[..., Q, N]`` -> ``[..., Q, N]``

    s_{i->c} is a softmax over classes, s_{c->i} one over queries; their product is not normalised. Its log-softmax
    over classes gives the log-probabilities of a query. Working with logarithms keeps the result finite for any
    number of queries and any finite distances.
    """
    if not isinstance(distances, Tensor) or not distances.is_floating_point():
        raise TypeError("distances must be a floating point torch.Tensor [..., Q, N]")
    if distances.ndim < 2 or distances.numel() == 0:
        raise ValueError(f"distances must have shape [..., Q, N] with Q, N >= 1, not {list(distances.shape)}")
    if not bool(torch.isfinite(distances).all()) or bool((distances < 0).any()):
        raise ValueError("distances must be finite and not negative")
    return log_similarity(-distances)


def log_similarity(scores: Tensor) -> Tensor:
    """Bi-SIM of scores -d(x_i, p_c) that are known to be right, ``[..., Q, N]``."""
    return scores.log_softmax(-1) + scores.log_softmax(-2)
