"""An episode as a picture: what was given, and what each method made of the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from team.report.figure import RIGHT, WRONG, colour, figure, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL = 1.22  # side of a picture with its frame and gap; a picture has side 1
_SUPPORTS = 5  # shown of each class at most


@dataclass(frozen=True, eq=False)
class EpisodePictures:
    """One episode as a person sees it.

    support: uint8 ``[S, 3, H, W]`` with support_labels ``[S]``; query: uint8 ``[Q, 3, H, W]`` with answers ``[Q]``;
    classes: the N names that labels 0..N-1 stand for
    """

    support: Tensor
    support_labels: Tensor
    query: Tensor
    answers: Tensor
    classes: Sequence[str]


def draw_episode(path: Path, episode: EpisodePictures, predictions: Mapping[str, Tensor], *, columns: int = 16) -> None:
    """Write a PNG with a panel per method: queries stand beside the class they were given, framed right or wrong.

    predictions: ``{method: [Q]}``, labels in 0..N-1; columns: queries in a line
    """
    ways = len(episode.classes)
    shown = min(_SUPPORTS, max(int((episode.support_labels == label).sum()) for label in range(ways)))
    lines = {
        name: [_lines(predicted, label, columns) for label in range(ways)] for name, predicted in predictions.items()
    }
    heights = [sum(counts) * _CELL + 0.25 * ways for counts in lines.values()]
    wide = 5.2 + (shown + columns) * _CELL
    scale = 9.0 / wide
    with figure(path, 9.0, sum(heights) * scale + 0.5 * len(heights)) as drawing:
        panels = drawing.subplots(len(predictions), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, height, (name, predicted) in zip(panels, heights, predictions.items(), strict=True):
            right = int((predicted == episode.answers).sum())
            share = f"{right} of {len(predicted)} right ({100 * right / len(predicted):.0f} %)"
            axes.set_title(f"{name}: {share}", loc="left", fontweight="bold")
            axes.set(xlim=(0, wide), ylim=(height, 0), aspect="equal")
            axes.axis("off")
            _panel(axes, episode, predicted, shown, columns, lines[name])


def _lines(predicted: Tensor, label: int, columns: int) -> int:
    """Lines that the queries given this label take; a class without any still takes one."""
    return max(1, math.ceil(int((predicted == label).sum()) / columns))


def _panel(
    axes: Axes, episode: EpisodePictures, predicted: Tensor, shown: int, columns: int, lines: Sequence[int]
) -> None:
    top, given, guessed = 0.2, 4.0, 4.9 + shown * _CELL
    for label, name in enumerate(episode.classes):
        axes.text(given - 0.3, top + 0.5, short(name, 18), ha="right", va="center")
        for column, position in enumerate((episode.support_labels == label).nonzero()[:shown, 0].tolist()):
            _tile(axes, episode.support[position], given + column * _CELL, top, "black")
        queries = (predicted == label).nonzero()[:, 0].tolist()
        queries.sort(key=lambda query: (int(episode.answers[query]) != label, query))
        for number, query in enumerate(queries):
            line, column = divmod(number, columns)
            right = int(episode.answers[query]) == label
            left, above = guessed + column * _CELL, top + line * _CELL
            _tile(axes, episode.query[query], left, above, RIGHT if right else WRONG, crossed=not right)
        foot = top + lines[label] * _CELL
        axes.plot([guessed - 0.45] * 2, [top, foot - 0.2], color=colour(7), linewidth=0.8)
        top = foot + 0.25


def _tile(axes: Axes, image: Tensor, left: float, top: float, frame: str, crossed: bool = False) -> None:
    """One framed picture; a wrong one also has a corner cut off, for whoever does not see red and green apart."""
    from matplotlib.patches import Polygon, Rectangle

    pixels = image.permute(1, 2, 0).cpu().numpy()
    axes.imshow(pixels, extent=(left, left + 1, top + 1, top), interpolation="nearest", aspect="equal")
    axes.add_patch(Rectangle((left, top), 1, 1, fill=False, edgecolor=frame, linewidth=2.0))
    if crossed:
        right = left + 1
        axes.add_patch(Polygon([(right, top), (right - 0.38, top), (right, top + 0.38)], facecolor=frame, linewidth=0))
