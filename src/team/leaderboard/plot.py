"""Accuracy against speed: which method is worth its time."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

from team.leaderboard.report import BACKBONES, usual_hardware
from team.leaderboard.run import REFERENCE
from team.methods import create_method
from team.methods.network import NetworkMethod
from team.report.figure import colour, figure

_KINDS = (("one query at a time", 7, "o"), ("queries together (transductive)", 0, "s"), ("TEAM and team+", 5, "D"))


def plot_speed(leaderboard: dict[str, Any], path: Path) -> None:
    """Write one panel per sampling: mean accuracy of each method over the columns of the backbone that has most.

    Methods that were not run in all of these are left out, since their means would be of other episodes, and so are
    those that fit the network to each episode, whose speed is that of the network, and what was measured on other
    hardware than the rest.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    [(backbone, _)] = Counter(cell["backbone"] for cell in leaderboard["cells"]).most_common(1)
    hardware = usual_hardware(leaderboard["cells"])
    methods = {cell["method"] for cell in leaderboard["cells"]}
    on_features = {name for name in methods if not isinstance(create_method(name), NetworkMethod)}
    cells = [
        cell
        for cell in leaderboard["cells"]
        if (cell["backbone"], cell["hardware"]) == (backbone, hardware) and cell["method"] in on_features
    ]
    samplings = list(dict.fromkeys(cell["sampling"] for cell in cells))
    with figure(path, 6.4 * len(samplings), 6.0) as drawing:
        panels = drawing.subplots(1, len(samplings), squeeze=False)[0]
        for axes, sampling in zip(panels, samplings, strict=True):
            points = _points([cell for cell in cells if cell["sampling"] == sampling])
            for label, number, sign in _KINDS:
                chosen = [(x, y) for name, (x, y, kind) in points.items() if kind == label]
                if chosen:
                    style: Any = {"color": colour(number), "marker": sign, "linestyle": "none", "markersize": 7}
                    axes.plot(*zip(*chosen, strict=True), label=label, **style)
            axes.set(xscale="log", title=f"{sampling} queries", xlabel="episodes per second")
            axes.set_ylabel(f"accuracy, % (mean over data sets and shots, {BACKBONES.get(backbone, backbone)})")
            axes.xaxis.set_major_locator(LogLocator())
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.grid(alpha=0.25)
            axes.margins(x=0.28, y=0.08)
            _name(axes, {name: (x, y) for name, (x, y, _) in points.items()})
        drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _points(cells: list[dict[str, Any]]) -> dict[str, tuple[float, float, str]]:
    """Speed (geometric mean), accuracy and kind of each method that was run in all columns."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        rows.setdefault(cell["method"], []).append(cell)
    columns = {name: {(cell["dataset"], cell["shots"]) for cell in row} for name, row in rows.items()}
    everywhere = set().union(*columns.values())
    points = {}
    for name, row in rows.items():
        if columns[name] == everywhere:
            speed = math.exp(fmean(math.log(cell["episodes_per_second"]) for cell in row))
            kind = _KINDS[2 if name in ("team", REFERENCE) else 1 if row[0]["transductive"] else 0][0]
            points[name] = (speed, fmean(cell["mean"] for cell in row), kind)
    return points


def _name(axes: Any, points: dict[str, tuple[float, float]]) -> None:
    """Write each name beside its point, on the side and at the height where it covers least."""
    axes.figure.canvas.draw()  # settles the limits, which text does not move
    places = [axes.transData.transform(point) for point in points.values()]
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in places]
    for name, point in sorted(points.items(), key=lambda item: item[1][1]):
        x, y = axes.transData.transform(point)
        wide = 6.4 * len(name) + 12
        offsets = [(side, lift) for lift in (0, 11, -11, 22, -22, 33, -33) for side in (1, -1)]
        free = [at for at in offsets if not any(_meet(_label(x, y, wide, *at), box) for box in taken)]
        side, lift = (free or offsets)[0]
        taken.append(_label(x, y, wide, side, lift))
        text = {"textcoords": "offset points", "va": "center", "ha": "left" if side > 0 else "right", "fontsize": 9}
        line = {"arrowprops": {"arrowstyle": "-", "color": "#999999", "linewidth": 0.6}} if lift else {}
        axes.annotate(name, point, xytext=(side * 7, lift * 72 / axes.figure.dpi), **text, **line)


def _label(x: float, y: float, wide: float, side: int, lift: float) -> tuple[float, float, float, float]:
    left = x + 8 if side > 0 else x - 8 - wide
    return (left, y + lift - 6, left + wide, y + lift + 6)


def _meet(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
