"""The paper's "Sparsity Nature of Episodic-wise Adaptive Metric" (Fig. 3): how diagonal an oracle metric is.

LMNN, given the labels of all support and query samples of one task, makes a metric under which every sample can be told
apart. Its elements are scaled to [0, 1] and sorted; the paper finds those on the diagonal far above the others.

A word of care. A task of 5 x (5 + 15) = 100 samples spans at most 99 of its d = 256 dimensions. On the others LMNN says
nothing, and M stays what it was at the start, the identity: part of the diagonal is there before anything is learned.
So the same gap is also measured on the learned part alone, M restricted to the span of the samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from team.episode import check_features
from team.evaluation.lmnn import LMNNResult, large_margin_metric, squared_distances
from team.report.figure import colour, figure

NEIGHBOURS = 3


@dataclass(frozen=True, eq=False)
class Sparsity:
    """oracle: the LMNN metric of a task; scaled: its elements scaled to [0, 1], ``[d, d]``.

    diagonal ``[d]`` and off_diagonal ``[d(d-1)]``: the scaled elements, each in descending order
    learned_gap: the gap between them, for M restricted to the span of the samples and scaled anew
    euclidean_accuracy, oracle_accuracy: per cent of the samples that their 3 nearest others classify rightly
    """

    oracle: LMNNResult
    scaled: Tensor
    diagonal: Tensor
    off_diagonal: Tensor
    learned_gap: float
    euclidean_accuracy: float
    oracle_accuracy: float

    @property
    def gap(self) -> float:
        """Smallest diagonal minus largest off-diagonal element: above zero where all of the diagonal stands out."""
        return float(self.diagonal[-1] - self.off_diagonal[0])

    @property
    def zero(self) -> float:
        """What an element of zero has become by scaling."""
        return float(_scaled(self.oracle.matrix, torch.zeros_like(self.oracle.matrix[0, 0])))

    def summary(self) -> dict[str, Any]:
        """The numbers of the analysis, as JSON values."""
        return {
            "dimension": len(self.diagonal),
            "span": self.oracle.basis.shape[1],
            "gap": self.gap,
            "learned_gap": self.learned_gap,
            "diagonal": _spread(self.diagonal),
            "off_diagonal": _spread(self.off_diagonal),
            "zero": self.zero,
            "euclidean_accuracy": self.euclidean_accuracy,
            "oracle_accuracy": self.oracle_accuracy,
            "loss_start": self.oracle.losses[0],
            "loss": self.oracle.loss,
            "loss_bound": self.oracle.bound,
            "steps": len(self.oracle.losses) - 1,
            "converged": self.oracle.converged,
        }


@torch.no_grad()
def analyse_sparsity(features: Tensor, labels: Tensor) -> Sparsity:
    """The analysis of one task: ``features [n, d]`` of its support and query together, with ``labels [n]``."""
    check_features("features", features, dims=(2,))
    if features.shape[1] < 2:
        raise ValueError("features have one dimension, so their metric has no element off the diagonal; give more")
    oracle = large_margin_metric(features, labels, targets=NEIGHBOURS)
    scaled = _scaled(oracle.matrix)
    diagonal, off_diagonal = _sorted_elements(scaled)
    span = oracle.basis @ oracle.basis.mT
    learned_diagonal, learned_off_diagonal = _sorted_elements(_scaled(span @ oracle.matrix @ span))
    return Sparsity(
        oracle,
        scaled,
        diagonal,
        off_diagonal,
        float(learned_diagonal[-1] - learned_off_diagonal[0]),
        neighbour_accuracy(features, labels),
        neighbour_accuracy(features, labels, oracle.matrix),
    )


def neighbour_accuracy(features: Tensor, labels: Tensor, matrix: Tensor | None = None) -> float:
    """Per cent of ``features [n, d]`` whose 3 nearest others, under M or Euclidean, have its label by majority.

    Where all three differ, the nearest decides.
    """
    samples = features.double() - features.double().mean(0)
    distances = squared_distances(samples, matrix).fill_diagonal_(torch.inf)
    nearest = distances.topk(min(NEIGHBOURS, len(samples) - 1), largest=False).indices
    classes, numbers = torch.unique(labels, return_inverse=True)
    votes = F.one_hot(numbers[nearest], len(classes)).double()  # [n, 3, N]
    votes[:, 0] *= 1.5
    return 100 * int((votes.sum(1).argmax(1) == numbers).sum()) / len(samples)


def plot_sparsity(sparsity: Sparsity, path: Path) -> None:
    """Write the paper's Fig. 3 as PNG: left the heat map, right all elements in descending order."""
    from matplotlib.ticker import StrMethodFormatter

    d = len(sparsity.diagonal)
    values, order = torch.cat([sparsity.diagonal, sparsity.off_diagonal]).sort(descending=True, stable=True)
    place = torch.arange(1, d * d + 1, device=order.device)
    with figure(path, 10.0, 4.6) as drawing:
        heat, ranks = drawing.subplots(1, 2)
        shown = heat.imshow(sparsity.scaled.cpu().numpy(), cmap="turbo", vmin=0, vmax=1, interpolation="nearest")
        heat.set(title="oracle metric, scaled to [0, 1]", xlabel="feature", ylabel="feature")
        drawing.colorbar(shown, ax=heat, shrink=0.9)
        for name, chosen, number, sign in (("off-diagonal", order >= d, 0, "."), ("diagonal", order < d, 5, "o")):
            x, y = place[chosen].cpu().numpy(), values[chosen].cpu().numpy()
            ranks.plot(x, y, linestyle="none", marker=sign, markersize=4, color=colour(number), label=name)
        ranks.axhline(sparsity.zero, color="#666666", linewidth=1, linestyle="--", label="an element of zero")
        ranks.set(title=f"all {d * d:,} elements, gap {sparsity.gap:+.3f}", xlabel="place in descending order")
        ranks.set(xscale="log", ylabel="value of the element, scaled", ylim=(-0.02, 1.02))
        ranks.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        ranks.grid(alpha=0.25)
        ranks.legend()


def _scaled(matrix: Tensor, elements: Tensor | None = None) -> Tensor:
    """Elements, by default all of the matrix, on a scale where its smallest is 0 and its largest 1."""
    low, high = matrix.min(), matrix.max()
    return ((matrix if elements is None else elements) - low) / (high - low).clamp_min(torch.finfo(matrix.dtype).tiny)


def _sorted_elements(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Elements of ``matrix [d, d]`` on the diagonal ``[d]`` and off it ``[d(d-1)]``, in descending order."""
    on = torch.eye(len(matrix), dtype=torch.bool, device=matrix.device)
    return matrix[on].sort(descending=True).values, matrix[~on].sort(descending=True).values


def _spread(values: Tensor) -> dict[str, float]:
    return {"smallest": float(values.min()), "mean": float(values.mean()), "largest": float(values.max())}
