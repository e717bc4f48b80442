"""The ablation of team+ on validation classes: each of its choices switched off or changed, one at a time.

    python benchmarks/ablation_team_plus.py            runs it and writes results/bench/ablation-team-plus.json
    python benchmarks/ablation_team_plus.py --table    prints the table of that file as Markdown

Needs the three data sets in the cache. Features are those of the ConvNets trained with TEAM that come with the package.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from team import create_method, evaluate
from team.data.images import ImageSet
from team.evaluation.features import cached_features
from team.evaluation.paired import compare
from team.files import write_json, write_text
from team.provenance import commit, hardware
from team.recipes import RECIPES
from team.recipes.run import Runner
from team.weights import weights_path

IMAGES, EPISODES, SEED = 100, 256, 3
RECIPE_NAMES = ("miniimagenet-conv4", "cifar100-conv4", "cub-conv4")
SAMPLINGS = ("balanced", "dirichlet")

VARIANTS: dict[str, dict[str, Any]] = {
    "team+": {},
    "classes assumed equal": {"balance": "uniform"},
    "shares of classes free, not weighed against equal ones": {"balance": "free"},
    "no shrinkage of the shares": {"shrinkage": 0.0},
    "shares shrunk twice as much": {"shrinkage": 0.3},
    "no rounds": {"rounds": 0},
    "3 rounds": {"rounds": 3},
    "15 rounds": {"rounds": 15},
    "Euclidean distance, γ = 0 (temperature 0.06)": {"gamma": 0.0, "temperature": 0.06},
    "γ = 5 (temperature 0.035)": {"gamma": 5.0, "temperature": 0.035},
    "no smoothing": {"smoothing": 0.0},
    "5 neighbours": {"neighbours": 5},
    "one temperature for all rounds": {"start": 1.0},
    "temperature 0.03": {"temperature": 0.03},
    "temperature 0.06": {"temperature": 0.06},
    "half the doubt": {"doubt": 0.15},
    "twice the doubt": {"doubt": 0.6},
}


def run(folder: Path, device: str) -> dict[str, Any]:
    """Accuracy of every variant in every column, and its paired difference to team+."""
    started_from = commit()  # of the code that is loaded, whatever is committed while this runs
    columns = []
    for recipe in RECIPE_NAMES:
        images = Runner(RECIPES[recipe], folder, device).images("val")
        for shots in (1, 5):
            weights = weights_path(f"{recipe}-{shots}shot-team")
            features = cached_features(weights, images.checksum, partial(_same, images), each=IMAGES, device=device)
            for sampling in SAMPLINGS:
                cells = column(features.by_class(), shots, sampling)
                columns.append({"weights": weights.stem, "sampling": sampling, "cells": cells})
                print(weights.stem, sampling, cells["team+"]["mean"], flush=True)
    about = {
        "classes": "validation",
        "images_per_class": IMAGES,
        "episodes": EPISODES,
        "seed": SEED,
        "commit": started_from,
        "hardware": hardware(device),
    }
    return {"about": about, "variants": VARIANTS, "columns": columns}


def column(features: dict[str, Tensor], shots: int, sampling: str) -> dict[str, dict[str, float]]:
    """The cells of one column, by variant; the first is team+ as it is."""
    outcomes = {
        name: evaluate(
            create_method("team+", **options),
            features,
            shots=shots,
            episodes=EPISODES,
            seed=SEED,
            sampling=sampling,
        )
        for name, options in VARIANTS.items()
    }
    cells = {}
    for name, outcome in outcomes.items():
        paired = compare(outcome, outcomes["team+"])
        numbers = {
            "mean": outcome.mean,
            "ci95": outcome.ci95,
            "difference": paired.difference,
            "difference_ci95": paired.ci95,
        }
        cells[name] = {key: round(value, 3) for key, value in numbers.items()}
    return cells


def _same(images: ImageSet) -> ImageSet:
    return images


def table(found: dict[str, Any]) -> str:
    """Means over the data sets: of team+ the accuracy, of every other row the difference to it."""
    heads = [(shots, sampling) for shots in (1, 5) for sampling in SAMPLINGS]
    lines = [
        "| |" + "".join(f" {shots}-shot, {sampling} |" for shots, sampling in heads),
        "|---|" + "---|" * len(heads),
    ]
    for name in found["variants"]:
        row = []
        for shots, sampling in heads:
            cells = [
                column["cells"][name]
                for column in found["columns"]
                if f"-{shots}shot-" in column["weights"] and column["sampling"] == sampling
            ]
            key, sign = ("mean", "") if name == "team+" else ("difference", "+")
            row.append(format(sum(cell[key] for cell in cells) / len(cells), f"{sign}.2f"))
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(lines)


_PAGE = """# team+, part by part

Generated by `benchmarks/ablation_team_plus.py` from `bench/ablation-team-plus.json`; do not edit. Accuracy of `team+`
with its defaults on **validation** classes (mean over the three data sets, ConvNet weights), and what changes when one
choice is made otherwise, on the same episodes. Test figures are in [leaderboard.md](leaderboard.md).

{table}

Most of the gain over TEAM is in the rounds and in weighing two hypotheses about the balance of classes. Once prototypes
are iterated, the metric itself (γ) makes no difference to speak of on these features.
"""


def write_page(found: dict[str, Any], path: Path) -> None:
    write_text(path, _PAGE.format(table=table(found)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--results", type=Path, default=Path("results/bench/ablation-team-plus.json"))
    options = parser.parse_args()
    if not options.table:
        write_json(options.results, run(Path("runs"), options.device))
    found = json.loads(options.results.read_text(encoding="utf-8"))
    print(table(found))
    write_page(found, options.results.parents[1] / "team-plus.md")
