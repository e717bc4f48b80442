"""Plots of a metric, of features in the plane, and of training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from team.report.figure import colour, figure, marker, short


def draw_metric(path: Path, matrix: Tensor, title: str = "M†, scaled to [0, 1]") -> None:
    """Write the heat map of a metric ``[d, d]`` as PNG, its elements scaled to [0, 1] as in the paper's figure."""
    low, high = matrix.min(), matrix.max()
    scaled = (matrix - low) / (high - low).clamp_min(torch.finfo(matrix.dtype).tiny)
    with figure(path, 6.6, 5.6) as drawing:
        axes = drawing.subplots()
        shown = axes.imshow(scaled.detach().cpu().numpy(), cmap="turbo", vmin=0, vmax=1, interpolation="nearest")
        axes.set(title=title, xlabel="feature", ylabel="feature")
        drawing.colorbar(shown, ax=axes, shrink=0.9, label="value of the element, scaled")


@dataclass(frozen=True, eq=False)
class FeatureView:
    """Queries ``[Q, d]`` and prototypes ``[N, d]`` in one space, whose Euclidean distance is what counts there."""

    title: str
    query: Tensor
    prototypes: Tensor


def draw_features(path: Path, views: Sequence[FeatureView], answers: Tensor, classes: Sequence[str]) -> None:
    """Write each view as the plane of its two principal components, side by side, as PNG.

    Colour and shape say the true class (answers ``[Q]``), a star is a class's prototype, and a hollow sign a query to
    which, in the whole space, the prototype of another class is nearest.
    """
    from matplotlib.lines import Line2D

    with figure(path, 9.0, 5.2) as drawing:
        panels = drawing.subplots(1, len(views), squeeze=False)[0]
        for axes, view in zip(panels, views, strict=True):
            right = (torch.cdist(view.query[None], view.prototypes[None])[0].argmin(-1) == answers).cpu()
            centre, directions, share = _plane(torch.cat([view.query, view.prototypes]))
            query, prototypes = (((x - centre) @ directions).cpu() for x in (view.query, view.prototypes))
            for label in range(len(classes)):
                for hit in (True, False):
                    points = query[(answers.cpu() == label) & (right == hit)]
                    face = colour(label) if hit else "none"
                    style: dict[str, Any] = {"facecolors": face, "edgecolors": colour(label), "marker": marker(label)}
                    axes.scatter(points[:, 0], points[:, 1], s=38, linewidths=1.3, alpha=0.85, **style)
            for label, (x, y) in enumerate(prototypes.tolist()):
                axes.scatter(x, y, s=330, marker="*", color=colour(label), edgecolors="black", linewidths=1.2, zorder=3)
            axes.set_title(f"{view.title}\nnearest prototype is right for {100 * right.double().mean():.0f} %")
            axes.set(xlabel=f"1st component ({share[0]:.0%} of the variance)", ylabel=f"2nd component ({share[1]:.0%})")
            axes.set(xticks=[], yticks=[])
        handles = [
            Line2D([], [], color=colour(label), marker=marker(label), linestyle="none") for label in range(len(classes))
        ]
        handles.append(Line2D([], [], color="white", marker="*", markeredgecolor="black", markersize=14, linestyle=""))
        handles.append(Line2D([], [], color="none", marker="o", markeredgecolor="black", linestyle=""))
        names = [f" {short(name)}" for name in classes]  # a space, since matplotlib leaves out names that start with _
        drawing.legend(handles, [*names, "prototype", "nearest to a wrong one"], loc="outside lower center", ncols=4)


def _plane(points: Tensor) -> tuple[Tensor, Tensor, list[float]]:
    """Centre ``[d]``, the two principal directions ``[d, 2]`` and the share of the variance along each."""
    centre = points.mean(0)
    _, scales, directions = torch.linalg.svd(points - centre, full_matrices=False)
    variance = scales.square()
    return centre, directions[:2].mT, (variance / variance.sum().clamp_min(1e-30))[:2].tolist()


def read_curve(path: Path, per_step: int = 1) -> list[dict[str, float]]:
    """The lines of a run's metrics.jsonl, with "seen" (steps times ``per_step``, e.g. episodes) added to each."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row | {"seen": row["step"] * per_step} for row in rows]


def draw_curves(path: Path, curves: Mapping[str, Sequence[Mapping[str, float]]], unit: str = "episodes") -> None:
    """Write loss and validation accuracy of training runs (from :func:`read_curve`) as PNG, side by side."""
    panels = (("loss", "training loss", "loss"), ("validation", "validation accuracy", "accuracy (%)"))
    with figure(path, 9.0, 4.2) as drawing:
        for axes, (key, title, label) in zip(drawing.subplots(1, 2), panels, strict=True):
            for number, rows in enumerate(curves.values()):
                style = {"color": colour(number), "marker": marker(number), "markersize": 5}
                axes.plot([row["seen"] for row in rows], [row[key] for row in rows], **style)
            axes.set(title=title, xlabel=unit, ylabel=label)
            axes.set_xlim(left=0)
            axes.grid(alpha=0.25)
        drawing.legend(drawing.axes[0].lines, list(curves), loc="outside lower center", ncols=4)
