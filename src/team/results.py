"""Result files: one JSON per evaluated cell, with all that is needed to know what the number means."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from team.evaluation.evaluate import Evaluation
from team.files import atomic_path, write_json

_OTHERS = {"labelling.json"}  # what stands beside the results of cells
_NEEDED = ("cell", "dataset", "split", "backbone", "method", "ways", "shots", "episodes", "mean", "ci95")


@dataclass(frozen=True)
class Result:
    """The facts of one result file; mean and ci95 are in per cent."""

    facts: dict[str, Any]

    @property
    def cell(self) -> str:
        return str(self.facts["cell"])

    @property
    def mean(self) -> float:
        return float(self.facts["mean"])

    @property
    def ci95(self) -> float:
        return float(self.facts["ci95"])

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.ci95:.2f}"


def describe(facts: dict[str, Any], evaluation: Evaluation) -> Result:
    """The facts of a cell together with what its evaluation gave."""
    facts = facts | {
        "ways": evaluation.ways,
        "shots": evaluation.shots,
        "queries": evaluation.queries,
        "sampling": evaluation.sampling,
        "episodes": len(evaluation.accuracies),
        "test_seed": evaluation.seed,
        "mean": round(evaluation.mean, 4),
        "ci95": round(evaluation.ci95, 4),
    }
    if missing := [name for name in _NEEDED if name not in facts]:
        raise ValueError(f"a result needs {', '.join(missing)}")
    return Result(facts)


def write_result(folder: Path, result: Result, evaluation: Evaluation) -> None:
    """Write ``<cell>.json`` and, beside it, the accuracy of every episode, compressed."""
    with atomic_path(folder / f"{result.cell}.accuracies.json.gz") as temporary:
        values = [round(value, 3) for value in evaluation.accuracies.tolist()]
        temporary.write_bytes(gzip.compress(json.dumps(values).encode(), mtime=0))
    write_json(folder / f"{result.cell}.json", result.facts)


def read_results(folder: Path) -> dict[str, Result]:
    """All results below a folder, by cell; a file that is no result is an error naming it."""
    results = {}
    for path in sorted(file for file in folder.glob("*.json") if file.name not in _OTHERS):
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            missing = [name for name in _NEEDED if name not in facts]
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} is not a result file ({error}); remove or restore it") from error
        if missing:
            raise ValueError(f"{path} is not a result file: it has no {', '.join(missing)}")
        results[facts["cell"]] = Result(facts)
    return results
