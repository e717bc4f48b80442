"""Cells that are means over partitions of the training set: one model and one result each, put together at the end."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from team.evaluation.evaluate import Evaluation
from team.model import load_model
from team.recipes.recipe import Recipe, Variant
from team.recipes.run import Runner, partition_name
from team.results import Result, describe, read_results, write_result

FOLDER = "partitions"
"""Where the results of single partitions are, below the folder of results."""


def fill_partition(
    runner: Runner,
    variant: Variant,
    shots: int,
    number: int,
    results: Path,
    *,
    episodes: int,
    anew: bool = False,
    time_limit: float | None = None,
) -> Result | None:
    """Train a cell on one partition, evaluate it on test episodes, and give the mean over all partitions there are.

    None if the time limit came first. What has a result already is left as it is, unless asked for ``anew``. The number
    of the partition decides the test episodes too.
    """
    one = runner.partition(number)
    name = partition_name(runner.recipe.cell(variant, shots), number)
    if anew or not (results / FOLDER / f"{name}.json").exists():
        if not one.train_cell(variant, shots, time_limit=time_limit).complete:
            return None
        model = load_model(one.model_path(variant, shots))
        one.evaluate_cell(model, variant, shots, results / FOLDER, episodes=episodes, seed=number)
    return merge_partitions(runner.recipe, variant, shots, results)


def merge_partitions(recipe: Recipe, variant: Variant, shots: int, results: Path) -> Result | None:
    """The result of a cell, over all test episodes of all partitions there are; written beside their folder."""
    cell = recipe.cell(variant, shots)
    known = read_results(results / FOLDER)
    found = {n: known[name] for n in range(recipe.partitions) if (name := partition_name(cell, n)) in known}
    if not found:
        return None
    facts = [result.facts for result in found.values()]
    accuracies = torch.cat(
        [_accuracies(results / FOLDER / f"{result.cell}.accuracies.json.gz") for result in found.values()]
    )
    first = facts[0]
    evaluation = Evaluation(
        accuracies, first["ways"], first["shots"], first["queries"], first["test_seed"], first["sampling"]
    )
    merged = first | {
        "cell": cell,
        "averaged_over": {"models": len(found), "of": recipe.partitions, "what": "partitions"},
        "partitions": [
            {"partition": number}
            | {
                name: entry[name]
                for name in ("mean", "ci95", "validation_accuracy", "temperature_choice", "training_seconds", "data")
            }
            for number, entry in zip(found, facts, strict=True)
        ],
    }
    for name in ("validation_accuracy", "temperature"):
        merged[name] = fmean(entry[name] for entry in facts)
    for name in ("commit", "hardware"):
        merged[name] = {key: ", ".join(sorted({entry[name][key] for entry in facts})) for key in first[name]}
    merged["training_seconds"] = {
        key: fmean(entry["training_seconds"][key] or 0 for entry in facts) for key in first["training_seconds"]
    }
    del merged["temperature_choice"], merged["seed"]
    result = describe(merged, evaluation)
    result.facts["test_seed"] = list(found)
    write_result(results, result, evaluation)
    return result


def _accuracies(path: Path) -> torch.Tensor:
    values: list[Any] = json.loads(gzip.decompress(path.read_bytes()))
    return torch.tensor(values, dtype=torch.float64)
