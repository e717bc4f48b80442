"""Accuracy of a folder against the labels a person has given, from results/bench/labelling.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from team.report.figure import colour, figure, marker

TITLES = {"cub": "birds (CUB, crops)", "cifar100": "CIFAR-100 classes"}


def plot_clicks(facts: dict[str, Any], path: Path) -> None:
    """One panel per data set; the legend has the median number of labels to 95 %."""
    with figure(path, 11.0, 4.4) as drawing:
        panels = drawing.subplots(1, len(facts["data"]), squeeze=False)[0]
        for axes, (dataset, found) in zip(panels, facts["data"].items(), strict=True):
            for number, (way, clicks) in enumerate(found["clicks"].items()):
                style: Any = {"color": colour(number), "marker": marker(number), "markersize": 4}
                axes.plot(clicks["labels"], clicks["accuracy"], label=f"{way}: {needed(clicks)}", **style)
            axes.axhline(95, linestyle=":", color="grey")
            size = f"{facts['classes']} × {facts['images_per_class']} images"
            axes.set(title=f"{TITLES[dataset]}, {size}", xlabel="labels given, the least sure first")
            axes.set_ylabel("right labels in the folder, %")
            axes.grid(alpha=0.25)
            axes.legend(title="labels to 95 % (median)")


def needed(clicks: dict[str, Any]) -> str:
    """The median over draws of the labels to 95 %, where draws that never got there count as infinitely many."""
    median = float(np.median([np.inf if count is None else count for count in clicks["labels_to_95"]]))
    return f"{median:.0f}" if np.isfinite(median) else f"> {clicks['labels'][-1]}"


if __name__ == "__main__":
    source = Path(sys.argv[1] if len(sys.argv) > 1 else "results/bench/labelling.json")
    plot_clicks(json.loads(source.read_text()), source.parents[1] / "figures" / f"{source.stem}.png")
