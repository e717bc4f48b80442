"""The paper's tables from recipes: train what is missing, evaluate, and set the paper's figure beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from team.model import load_model
from team.recipes import RECIPES
from team.recipes.partitions import fill_partition
from team.recipes.run import Runner
from team.recipes.tables import PAPER, TABLES, TEST_EPISODES, Cell
from team.results import Result, read_results
from team.weights import list_weights, weights_path


@dataclass(frozen=True)
class Row:
    """One cell of a table: the paper's figure and ours, in per cent; ours is None where it was not run.

    paper: None where the paper has no such row; note: what there is to say about ours
    """

    cell: str
    dataset: str
    backbone: str
    method: str
    shots: int
    paper: float | None
    ours: float | None = None
    ci95: float | None = None
    note: str = ""

    @property
    def difference(self) -> float | None:
        return None if self.ours is None or self.paper is None else self.ours - self.paper

    def shown(self) -> tuple[str, ...]:
        """Data set, network, method, shots, the paper's figure, ours and the difference, as a table shows them."""
        ours = "" if self.ours is None else f"{self.ours:.2f} ± {self.ci95:.2f}"
        paper = "" if self.paper is None else f"{self.paper:.2f}"
        difference = "" if self.difference is None else f"{self.difference:+.2f}"
        ours = " ".join(filter(None, (ours, self.note)))
        return self.dataset, self.backbone, self.method, str(self.shots), paper, ours, difference


def reproduce(
    table: str,
    *,
    results: Path,
    runs: Path,
    root: Path | None = None,
    device: str = "cpu",
    only: str = "",
    quick: bool = False,
    retrain: bool = False,
) -> list[Row]:
    """Fill the cells of a table whose names contain ``only``, and return the whole table.

    A cell that has a result file is not run again. Otherwise it is evaluated with the weights that came with the
    package, or, without such weights or with ``retrain``, trained first. Where a cell is a mean over partitions, each
    of them is trained. ``quick`` trains a few episodes only, to see that everything runs.
    """
    check_table(table)
    known = read_results(results)
    runners: dict[str, Runner] = {}
    episodes = 20 if quick else TEST_EPISODES
    for name, variant, shots in TABLES[table].cells:
        recipe = RECIPES[name].quick() if quick else RECIPES[name]
        cell = recipe.cell(variant, shots)
        if only not in cell or (cell in known and not known[cell].partial and not retrain):
            continue
        if name not in runners:
            runners[name] = Runner(recipe, runs, device, root, compile=device != "cpu")
        runner = runners[name]
        if recipe.partitions > 1:
            for number in range(recipe.partitions):
                fill_partition(
                    runner, variant, shots, number, results, episodes=episodes // recipe.partitions, anew=retrain
                )
            continue
        if cell in list_weights() and not retrain and not quick:
            model = load_model(weights_path(cell))
        else:
            runner.train_cell(variant, shots)
            model = load_model(runner.model_path(variant, shots))
        runner.evaluate_cell(model, variant, shots, results, episodes=episodes)
    return table_rows(table, read_results(results))


def check_table(table: str) -> None:
    if table not in TABLES:
        raise ValueError(f"no table is called {table!r}; there are {', '.join(TABLES)} and sparsity")


def table_rows(table: str, results: dict[str, Result]) -> list[Row]:
    """A table from result files alone."""
    return [_row(cell, results) for cell in TABLES[table].cells]


def _row(cell: Cell, results: dict[str, Result]) -> Row:
    name, variant, shots = cell
    recipe = RECIPES[name]
    title = recipe.cell(variant, shots)
    row = Row(title, recipe.dataset, recipe.backbone, variant, shots, PAPER.get(cell))
    if title in results:
        result = results[title]
        return replace(row, ours=result.mean, ci95=result.ci95, note=f"({result.partial})" if result.partial else "")
    return replace(row, note="not run yet")


def as_markdown(rows: Sequence[Row]) -> str:
    lines = [
        "| data set | network | method | shots | paper | ours | difference |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    lines += [f"| {' | '.join(row.shown())} |" for row in rows]
    return "\n".join(lines) + "\n"


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [asdict(row) | {"difference": row.difference} for row in rows]
