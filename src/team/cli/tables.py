"""``team reproduce`` and ``team leaderboard``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal

from team.cli.shared import Name, choose_device


def reproduce(
    table: Name,
    root: Path | None = None,
    only: str = "",
    quick: bool = False,
    retrain: bool = False,
    results: Path = Path("results"),
    runs: Path = Path("runs"),
    device: str = "auto",
    format: Literal["text", "markdown", "json"] = "text",
    report: Path | None = None,
) -> None:
    """Fill a table of the paper: train what is missing, evaluate, print the paper's figure beside ours.

    Args:
        table: table1 (miniImageNet), table2 (CIFAR-100), table3 (CUB), ablation, semi, shots, or sparsity (Fig. 3).
        root: Official files of the data set, if it is not prepared yet.
        only: Only cells whose name contains this, e.g. conv4-1shot.
        quick: A few episodes of training and test, to see that everything runs; kept apart from real results.
        retrain: Train and evaluate anew, even where weights or results exist.
        results: Folder of result files.
        runs: Folder of checkpoints.
        device: auto, cpu or cuda.
        format: How to print the table.
        report: Also write all tables, from all result files, to this Markdown file.
    """
    from team.recipes.report import write_report
    from team.recipes.reproduce import as_json, as_markdown
    from team.recipes.reproduce import reproduce as run

    if table == "sparsity":
        from team.recipes.figures import reproduce_sparsity

        tasks = reproduce_sparsity(results, root=root, device=choose_device(device))
        print(json.dumps(tasks, indent=2))
        print(f"written: {results / 'figures' / 'sparsity.png'}", file=sys.stderr)
        return
    if quick:
        results, runs = results / "quick", runs / "quick"
    rows = run(
        table,
        results=results,
        runs=runs,
        root=root,
        device=choose_device(device),
        only=only,
        quick=quick,
        retrain=retrain,
    )
    if table == "shots":
        from team.recipes.figures import plot_shots
        from team.results import read_results

        plot_shots(read_results(results), results / "figures" / "shots.png")
    if format == "json":
        print(json.dumps(as_json(rows), indent=2))
    elif format == "markdown":
        print(as_markdown(rows))
    else:
        _print_rows(table, rows)
    if report is not None:
        write_report(results, report)
        print(f"written: {report}", file=sys.stderr)


def leaderboard(
    methods: tuple[str, ...] = (),
    datasets: tuple[str, ...] = ("miniimagenet", "cifar100", "cub"),
    backbones: tuple[str, ...] = ("conv4", "resnet18"),
    networks: tuple[str, ...] = ("baseline", "team"),
    shots: tuple[int, ...] = (1, 5),
    samplings: tuple[str, ...] = ("balanced", "dirichlet"),
    concentration: float = 2.0,
    present: int | None = None,
    episodes: int = 1000,
    seed: int = 0,
    tune: bool = False,
    weights: Path | None = None,
    root: Path | None = None,
    results: Path = Path("results"),
    device: str = "auto",
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    format: Literal["text", "markdown", "json"] = "text",
) -> None:
    """Compare methods on the same features and episodes: accuracy, calibration, speed; goes on where interrupted.

    Args:
        methods: Which ones; all of them if none is named.
        datasets: miniimagenet, cifar100, cub.
        backbones: conv4, resnet18, or resnet18-mean (miniImageNet), where there are weights.
        networks: Weights that give the features, by what they were trained as (baseline, tim, eam, team); where there
            are none for a number of shots, those for the nearest one do.
        shots: Support images per class.
        samplings: How queries are drawn: balanced, dirichlet, uniform.
        concentration: Of the Dirichlet distribution.
        present: Only so many of the 5 classes have queries; all by default.
        episodes: Test episodes for each figure.
        seed: Decides which episodes.
        tune: Choose the methods' settings on validation classes first, and keep them in the results folder.
        weights: Folder of model files of one's own, named like those of the package.
        root: Official files of the data sets, if they are not prepared yet.
        results: leaderboard.md goes here; JSON, settings and the plot into its folder leaderboard. Tables that were
            not run stay, and rows that were not where team+ is measured again and has the same figures.
        device: auto, cpu or cuda.
        precision: What networks compute features in; auto is bfloat16 on a GPU and float32 on a CPU, where bfloat16
            is faster with AVX-512 BF16, and much faster with AMX.
        format: What to print.
    """
    from team.data.sampling import Sampling
    from team.leaderboard import Selection, write_leaderboard

    chosen = Selection(
        methods=methods,
        datasets=datasets,
        backbones=backbones,
        networks=networks,
        shots=shots,
        samplings=tuple(Sampling(name, concentration, present) for name in samplings),
        episodes=episodes,
        seed=seed,
        precision=None if precision == "auto" else precision,
        folder=weights,
    )
    board = write_leaderboard(chosen, results, choose=tune, device=choose_device(device), root=root)
    if format == "json":
        print(json.dumps(board, indent=2))
    elif format == "markdown":
        print((results / "leaderboard.md").read_text(encoding="utf-8"))
    else:
        from rich.console import Console

        from team.leaderboard.report import terminal_tables

        asked = chosen.recipes()
        cells = [cell for cell in board["cells"] if cell["recipe"] in asked]
        Console().print(*terminal_tables(board | {"cells": cells}))
    print(f"written: {results / 'leaderboard.md'}", file=sys.stderr)


def _print_rows(table: str, rows: list[Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from team.recipes.tables import TABLES

    view = Table(title=TABLES[table].title)
    for heading in ("data set", "network", "method", "shots", "paper", "ours", "difference"):
        left = heading in ("data set", "network", "method")
        view.add_column(heading, justify="left" if left else "right", no_wrap=heading != "difference")
    for row in rows:
        view.add_row(*row.shown())
    Console().print(view)
