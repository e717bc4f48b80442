"""The leaderboard in one run that can be interrupted and go on: first settings, on validation classes, then the test.

Every method meets the same test episodes. What could not be run is listed with the reason.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import torch

from team.data.sampling import Sampling
from team.evaluation.embed import usual_precision
from team.evaluation.evaluate import BLOCK
from team.evaluation.paired import compare_accuracies
from team.files import write_json
from team.leaderboard.bench import QUERIES, WAYS, Bench, Protocol
from team.leaderboard.selection import Selection, Weights
from team.provenance import commit, file_checksum
from team.recipes import RECIPES
from team.recipes.run import Runner

REFERENCE = "team+"
COLUMN = ("recipe", "shots", "sampling")

Cell = dict[str, Any]
Settings = dict[str, dict[str, Any]]
"""By column, then by method: the setting with what it gave on validation classes."""


def tune(selection: Selection, path: Path, *, device: str = "cpu", root: Path | None = None) -> Settings:
    """Choose the settings of all methods on validation classes, and add them to the file at ``path``."""
    settings = read_settings(path)
    for bench, weights, sampling in _columns(selection, device, root):
        if weights.network == "own":
            continue  # trained as it is
        protocol = Protocol(weights.shots, sampling, selection.tuning_episodes, selection.seed + 1)
        chosen = settings.setdefault(column(weights, sampling), {})
        for name in weights.methods:
            found = chosen[name] = bench.tune(name, protocol)
            shown = ", ".join(f"{key} {value}" for key, value in found["setting"].items())
            _say(f"{column(weights, sampling)}, {name}: {found['validation']:.2f} % of validation with {shown}")
        write_json(path, settings)
    return settings


def run(selection: Selection, settings: Settings, *, device: str = "cpu", root: Path | None = None) -> dict[str, Any]:
    """Measure everything on test episodes; gives the leaderboard as JSON values."""
    _check(selection, settings)
    cells = list[Cell]()
    for bench, weights, sampling in _columns(selection, device, root):
        recipe = bench.runner.recipe
        protocol = Protocol(weights.shots, sampling, selection.episodes, selection.seed)
        for name in weights.methods:
            chosen = None if weights.network == "own" else settings[column(weights, sampling)][name]
            if chosen is None and bench.fits_network():
                protocol = replace(protocol, episodes=selection.slow_episodes)
            outcome = bench.measure(name, None if chosen is None else chosen["setting"], protocol)
            _say(f"{column(weights, sampling)}, {name}: {outcome['mean']:.2f} ± {outcome['ci95']:.2f} %")
            place = {
                "method": name,
                "recipe": weights.recipe,
                "dataset": recipe.dataset,
                "split": recipe.split,
                "backbone": recipe.backbone,
                "network": weights.network,
                "weights": weights.name,
                "members": recipe.members,
                "precision": selection.precision or usual_precision(device),
                "shots": weights.shots,
                "sampling": str(sampling),
            }
            cells.append(place | outcome | {"chosen": chosen})
    add_comparisons(cells)
    made_by = commit()
    for cell in cells:
        del cell["right"]
        cell["commit"] = made_by
    not_run = [
        {
            "recipe": weights.recipe,
            "weights": weights.name,
            "methods": list(weights.methods),
            "reason": "there are no such weights",
        }
        for weights in selection.weights()
        if weights.path is None
    ]
    about = {"ways": WAYS, "queries": QUERIES, "seed": selection.seed}
    return {"about": about, "cells": cells, "not_run": not_run}


def column(weights: Weights, sampling: Sampling) -> str:
    """The name of a column of the leaderboard, in the file of settings."""
    return f"{weights.label}, {sampling}"


def read_settings(path: Path) -> Settings:
    """The settings chosen so far; none if there is no file."""
    return _read(path, "file of settings; remove it and run with --tune")


def read_board(path: Path) -> dict[str, Any]:
    """A leaderboard as it was written; no values if there is no file."""
    return _read(path, "leaderboard; remove it and run again")


def _read(path: Path, what: str) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path} is no {what} ({error})") from error


def add_comparisons(cells: list[Cell]) -> None:
    """To each cell: its paired difference to the reference of its column, team+ if that was run, else the best.

    A method with its own network is compared with the reference among all networks.
    """
    for cell in cells:
        same = [other for other in cells if all(other[key] == cell[key] for key in COLUMN)]
        rivals = [other for other in same if cell["network"] in ("own", other["network"])]
        ours = [other for other in rivals if other["method"] == REFERENCE]
        reference = max(ours or rivals, key=lambda other: float(other["mean"]))
        cell["paired"] = None if reference is cell else _paired(cell, reference)


def _paired(cell: Cell, reference: Cell) -> dict[str, Any] | None:
    """None where the two have no episodes in common."""
    count = min(len(cell["right"]), len(reference["right"]))
    if len(cell["right"]) != len(reference["right"]):
        count -= count % BLOCK
    if count < 2:
        return None
    scale = 100 / (WAYS * QUERIES)
    first, second = (scale * torch.tensor(one["right"][:count], dtype=torch.float64) for one in (cell, reference))
    found = compare_accuracies(first, second)
    return {
        "to": reference["method"],
        "weights": reference["weights"],
        "difference": round(found.difference, 4),
        "ci95": round(found.ci95, 4),
        "wins": found.wins,
        "losses": found.losses,
        "p_t": found.p_t,
        "p_sign": found.p_sign,
        "episodes": count,
    }


def _columns(selection: Selection, device: str, root: Path | None) -> Iterator[tuple[Bench, Weights, Sampling]]:
    """Weights that exist, with each sampling; a network's columns follow each other and share its features."""
    runner: Runner | None = None
    for weights in selection.weights():
        if weights.path is None:
            continue
        if runner is None or runner.recipe.name != weights.recipe:
            runner = Runner(RECIPES[weights.recipe], Path("runs"), device, root)
        bench = Bench(weights.path, runner, selection.precision)
        for sampling in selection.samplings:
            yield bench, weights, sampling


def _check(selection: Selection, settings: Settings) -> None:
    """Raise before any work if there is nothing to run, or something has no settings."""
    existing = [weights for weights in selection.weights() if weights.path is not None]
    if not existing:
        raise ValueError("there are no weights for anything that was chosen; give a folder of model files")
    for weights in existing:
        if weights.network == "own" or weights.path is None:
            continue
        checksum = file_checksum(weights.path)
        for sampling, name in product(selection.samplings, weights.methods):
            where = column(weights, sampling)
            chosen = settings.get(where, {}).get(name)
            if chosen is None:
                raise ValueError(f"no setting was chosen for {name} ({where}); run once with --tune")
            if chosen["weights"] != checksum:
                raise ValueError(f"the setting of {name} ({where}) was chosen for other weights; run with --tune")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
