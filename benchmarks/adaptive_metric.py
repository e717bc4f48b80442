"""What the adaptive metric gives to each method made of distances: ``create_method(name, metric="adaptive")``, or not.

    python benchmarks/adaptive_metric.py           runs it and writes results/bench/adaptive-metric.json and its page
    python benchmarks/adaptive_metric.py --page    writes results/adaptive-metric.md from that file

Needs the three data sets in the cache. Features are those of the ConvNets that come with the package. Both forms of a
method choose from the same settings on the same validation episodes, then meet the same test episodes.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

from pages import fill_page
from torch import Tensor

from team import evaluate
from team.evaluation import Evaluation
from team.evaluation.paired import compare
from team.files import write_text
from team.leaderboard.bench import Bench
from team.leaderboard.report import BACKBONES, DATASETS, NETWORKS, markdown_table
from team.leaderboard.settings import Setting, build, settings_of
from team.methods import ADAPTABLE
from team.provenance import commit, file_checksum, hardware
from team.recipes import RECIPES
from team.recipes.run import Runner
from team.weights import weights_path

IMAGES, TRAINING_IMAGES = 40, 5  # of each class: of validation and test classes, and for the mean of training classes
EPISODES, SLOW_EPISODES, TUNING_EPISODES = 512, 256, 64
SEED, TUNING_SEED = 0, 1
SLOW = ("alpha-tim", "tim")
METRICS = ("euclidean", "adaptive")

# Their likeliest class is the same for every temperature, so one is enough to try.
INDIFFERENT = ("bd-cspn", "label-propagation", "protonet", "simpleshot")
# For the three forms of soft k-means: squared distances under M† grow with the fourth power of the features' length.
SOFT = [{"prepare": "given", "temperature": 8.0**power} for power in range(1, 7)]
SOFT += [{"prepare": "centred", "temperature": temperature} for temperature in (0.06, 0.12, 0.25)]


def candidates(name: str) -> list[Setting]:
    """What both forms of a method choose from: about what the leaderboard has, less what takes too long.

    M† of features as they are is another one than that of centred features of length one, so a method that may take
    the latter may also take the former.
    """
    if "soft-kmeans" in name:
        return SOFT
    settings = [one for one in settings_of(name) if one.get("form") != "gradient" and one.get("iterations", 0) <= 100]
    if name in INDIFFERENT:
        settings = list({repr(one | {"temperature": None}): one for one in settings}.values())
    centred = [setting for setting in settings if setting.get("prepare") == "centred"]
    return [setting | {"prepare": "given"} for setting in centred] + centred or settings


def run(folder: Path, device: str) -> dict[str, Any]:
    """Both forms of every method in every column."""
    started_from = commit()  # of the code that is loaded, whatever is committed while this runs
    columns = []
    for dataset in DATASETS:
        runner = Runner(RECIPES[f"{dataset}-conv4"], folder, device)
        for network, shots in product(NETWORKS, (1, 5)):
            weights = f"{dataset}-conv4-{shots}shot-{network}"
            path = weights_path(weights)
            place = {"dataset": dataset, "network": network, "shots": shots, "weights": weights}
            columns.append(place | {"checksum": file_checksum(path), "cells": column(Bench(path, runner), shots)})
            print(_summary(columns[-1:], shots, weights), flush=True)
    about = {
        "images_per_class": IMAGES,
        "episodes": EPISODES,
        "slow_episodes": SLOW_EPISODES,
        "slow": SLOW,
        "tuning_episodes": TUNING_EPISODES,
        "seed": SEED,
        "commit": started_from,
        "hardware": hardware(device),
    }
    return {"about": about, "columns": columns}


def column(bench: Bench, shots: int) -> dict[str, dict[str, Any]]:
    """By method: what each metric gives, and their paired difference."""
    mean = bench.features("train", TRAINING_IMAGES).mean()
    validation, test = (bench.features(part, IMAGES).by_class() for part in ("val", "test"))
    cells: dict[str, dict[str, Any]] = {}
    for name in sorted(ADAPTABLE):
        episodes = SLOW_EPISODES if name in SLOW else EPISODES
        found: dict[str, Evaluation] = {}
        cell: dict[str, Any] = {}
        for metric in METRICS:
            setting, accuracy = choose(name, metric, validation, mean, shots)
            found[metric] = evaluate(build(name, setting, mean), test, shots=shots, episodes=episodes, seed=SEED)
            cell[metric] = {
                "mean": round(found[metric].mean, 3),
                "ci95": round(found[metric].ci95, 3),
                "setting": setting,
                "validation": round(accuracy, 3),
            }
        paired = compare(found["adaptive"], found["euclidean"])
        cells[name] = cell | {"difference": round(paired.difference, 3), "difference_ci95": round(paired.ci95, 3)}
    return cells


def choose(name: str, metric: str, features: dict[str, Tensor], mean: Tensor, shots: int) -> tuple[Setting, float]:
    """The setting with the best accuracy on validation episodes, and that accuracy; the first among equals."""
    tried = []
    for candidate in candidates(name):
        setting = candidate | {"metric": metric}
        method = build(name, setting, mean)
        found = evaluate(method, features, shots=shots, episodes=TUNING_EPISODES, seed=TUNING_SEED)
        tried.append((setting, found.mean))
    return max(tried, key=lambda pair: pair[1])


_PAGE = """# The adaptive metric in other methods

Generated by `benchmarks/adaptive_metric.py` from `bench/adaptive-metric.json`; do not edit. Every method made of
distances or cosines takes `metric="adaptive"`, which puts those under M† (Eq. 10, the paper's γ, λ and α) in their
place. A cell is the accuracy with it and, in brackets, the change it makes on the same test episodes with the 95 %
interval of that change: {episodes} balanced 5-way episodes, {slow_episodes} for {slow}, from {images} images of each
class. Preparation of features, temperature and options were chosen on {tuning_episodes} validation episodes from
the same list for both forms; they are in the JSON. The interval is over test episodes alone: another draw of validation
episodes may choose otherwise.

{tables}
"""


def page(found: dict[str, Any]) -> str:
    about = found["about"]
    parts = []
    for network, title in NETWORKS.items():
        columns = [column for column in found["columns"] if column["network"] == network]
        names = list(columns[0]["cells"])
        rows = [[name, *(_shown(column["cells"][name]) for column in columns)] for name in names]
        heads = [f"{DATASETS[column['dataset']]} {column['shots']}-shot" for column in columns]
        parts += [f"## {BACKBONES['conv4']} {title}\n", markdown_table(["method", *heads], rows)]
        parts += [_summary(columns, shots, f"{shots}-shot") for shots in (1, 5)]
    return _PAGE.format(
        episodes=about["episodes"],
        slow_episodes=about["slow_episodes"],
        slow=" and ".join(about["slow"]),
        images=about["images_per_class"],
        tuning_episodes=about["tuning_episodes"],
        tables="\n".join(parts).rstrip(),
    )


def _shown(cell: dict[str, Any]) -> str:
    return f"{cell['adaptive']['mean']:.2f} ({cell['difference']:+.2f} ± {cell['difference_ci95']:.2f})"


def _summary(columns: list[dict[str, Any]], shots: int, where: str) -> str:
    cells = [cell for column in columns if column["shots"] == shots for cell in column["cells"].values()]
    better = sum(cell["difference"] > cell["difference_ci95"] for cell in cells)
    worse = sum(cell["difference"] < -cell["difference_ci95"] for cell in cells)
    mean = sum(cell["difference"] for cell in cells) / len(cells)
    return (
        f"{where}: better by more than the interval in {better} of {len(cells)} cells, worse in {worse}; "
        f"{mean:+.2f} points on average.\n"
    )


def write_page(found: dict[str, Any], path: Path) -> None:
    write_text(path, page(found))


if __name__ == "__main__":
    fill_page(
        __doc__,
        run,
        write_page,
        results="results/bench/adaptive-metric.json",
        page="adaptive-metric.md",
        again="--page",
    )
