"""Runs the comparisons and writes them down: `python -m benchmarks.peers FOLDER [--episodes 500] [--slow 50]`."""

from __future__ import annotations

import argparse
import io
import math
import sys
import time
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import torch
from benchmarks.peers.comparisons import COMPARISONS, NOT_RUN, REPOSITORIES, Comparison
from benchmarks.peers.tasks import DATA_SETS, QUERIES, WAYS, Loader, Tasks, draw_tasks
from torch import Tensor

from team.files import write_json
from team.methods import create_method
from team.provenance import commit, hardware

_BATCH = 128  # episodes that ours solves at once


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path, help="holds the peers' repositories, and in `site` what they import")
    arguments.add_argument("--episodes", type=int, default=500)
    arguments.add_argument("--slow", type=int, default=50, help="episodes where theirs is slow")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--output", type=Path, default=Path("results/bench/peers.json"))
    given = arguments.parse_args()
    sys.path.append(str(given.folder / "site"))
    missing = [name for name in REPOSITORIES if not (given.folder / name.split("/")[1]).is_dir()]
    if missing:
        arguments.error(f"{given.folder} has no checkout of {', '.join(missing)}")
    about = {
        "features": "validation classes, shipped ConvNet weights of the ProtoNet baseline, in units of its temperature",
        "ways": WAYS,
        "queries": QUERIES,
        "seed": given.seed,
        "commit": commit(),
        "hardware": hardware("cpu"),
        "torch": torch.__version__,
    }
    rows = []
    for dataset in DATA_SETS:
        for shots in (1, 5):
            tasks = draw_tasks(given.folder, dataset, shots, max(given.episodes, given.slow), given.seed)
            solved: dict[Loader, tuple[Tensor, float]] = {}
            for comparison in COMPARISONS:
                chosen = tasks.first(given.slow if comparison.slow else given.episodes)
                if comparison.load not in solved:
                    solved[comparison.load] = _theirs(comparison, chosen, given.folder)
                row = {"dataset": dataset} | compare(comparison, chosen, *solved[comparison.load])
                print(*(row[key] for key in ("dataset", "shots", "method", "difference", "agreement")), flush=True)
                rows.append(row)
            write_json(given.output, {"about": about, "not_run": NOT_RUN, "comparisons": rows})


def _theirs(comparison: Comparison, tasks: Tasks, folder: Path) -> tuple[Tensor, float]:
    """Their predictions, and the seconds they took, the import of their code left out."""
    solve = comparison.load(folder / comparison.repository.split("/")[1])
    started = time.perf_counter()
    with redirect_stderr(io.StringIO()):  # progress bars
        predictions = solve(tasks)
    return predictions, time.perf_counter() - started


def compare(comparison: Comparison, tasks: Tasks, theirs: Tensor, seconds: float) -> dict[str, Any]:
    """Ours beside theirs; accuracies and their differences in per cent, with half of the 95 % interval."""
    options = comparison.options(tasks)
    started = time.perf_counter()
    ours = _ours(comparison.method, options, tasks)
    rates = len(tasks) / (time.perf_counter() - started), len(tasks) / seconds
    right = [100 * (answer == tasks.truth).double().mean(-1) for answer in (ours, theirs)]
    return {
        "shots": tasks.shots,
        "method": comparison.method,
        "options": {name: "the centre" if isinstance(value, Tensor) else value for name, value in options.items()},
        "repository": comparison.repository,
        "commit": REPOSITORIES[comparison.repository],
        "implementation": comparison.implementation,
        "note": comparison.note,
        "differs": comparison.differs,
        "episodes": len(tasks),
        "ours": _interval(right[0]),
        "theirs": _interval(right[1]),
        "difference": _interval(right[0] - right[1]),
        "agreement": round(100 * float((ours == theirs).double().mean()), 3),
        "episodes_per_second": {"ours": round(rates[0], 1), "theirs": round(rates[1], 1)},
    }


@torch.no_grad()
def _ours(name: str, options: dict[str, Any], tasks: Tasks) -> Tensor:
    method = create_method(name, **options)
    parts = (part.split(_BATCH) for part in (tasks.support, tasks.labels, tasks.query))
    return torch.cat([method(*batch).argmax(-1) for batch in zip(*parts, strict=True)])


def _interval(values: Tensor) -> dict[str, float]:
    return {
        "mean": round(float(values.mean()), 4),
        "ci95": round(1.96 * float(values.std()) / math.sqrt(len(values)), 4),
    }


if __name__ == "__main__":
    main()
