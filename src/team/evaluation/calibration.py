"""How far a method's confidence is from its accuracy: the expected calibration error."""

from __future__ import annotations

import torch
from torch import Tensor

BINS = 15


class Calibration:
    """Collects answers and gives their expected calibration error (Guo et al., ICML 2017) over 15 equal bins.

    A bin holds the queries whose likeliest class has a probability in it; the error is the mean over queries of the
    difference between a bin's share of right answers and its mean confidence. Nothing waits for the device until
    :meth:`error` is asked for.
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self._sums = torch.zeros(BINS, 3, dtype=torch.float64, device=device)  # answers, right ones, their confidence

    def add(self, confidence: Tensor, right: Tensor) -> None:
        """Probability of the chosen class, and whether it was right; both of one shape."""
        confidence = confidence.flatten().double()
        # A probability on the border belongs to the bin below, as in the paper; one that is no number to any.
        place = (confidence.nan_to_num() * BINS).ceil().long().clamp(1, BINS) - 1
        rows = torch.stack([torch.ones_like(confidence), right.flatten().double(), confidence], -1)
        self._sums.index_add_(0, place, rows)

    def error(self) -> float:
        """In per cent. NaN if any confidence was no number."""
        count, right, confidence = self._sums.cpu().unbind(-1)
        return 100 * float((right - confidence).abs().sum() / count.sum())
