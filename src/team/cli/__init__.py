"""The command line: parse, call, print. Each command is a function whose parameters are its flags."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tyro

from team.cli.bench import bench_metric, bench_train
from team.cli.data import download, info, prepare
from team.cli.label import label
from team.cli.shared import keep_freed_memory
from team.cli.tables import leaderboard, reproduce
from team.cli.training import evaluate, train


def demo(out: Path = Path("team-demo"), seed: int = 0, quick: bool = False) -> None:
    """Train a small network on built-in images, compare TEAM with its baseline, write a report (a minute or two).

    Args:
        out: Folder for the report; a demo that was interrupted goes on from there.
        seed: Decides images, weights and episodes.
        quick: Seconds instead of minutes, to see that everything runs; the figures then mean nothing.
    """
    from team.demo import run_demo

    run_demo(out, seed=seed, quick=quick)


def data() -> None:
    """Prepare, describe or download data sets (see team data --help)."""


def bench() -> None:
    """Measure speed (see team bench --help)."""


_GROUPS: dict[str, dict[str, Callable[..., Any]]] = {
    "data": {"prepare": prepare, "info": info, "download": download},
    "bench": {"metric": bench_metric, "train": bench_train},
}


def main() -> None:
    """The ``team`` command."""
    arguments = sys.argv[1:]
    commands: dict[str, Callable[..., Any]] = {
        "demo": demo,
        "data": data,
        "train": train,
        "evaluate": evaluate,
        "reproduce": reproduce,
        "leaderboard": leaderboard,
        "label": label,
        "bench": bench,
    }
    program = "team"
    if arguments and arguments[0] in _GROUPS:
        program, commands, arguments = f"team {arguments[0]}", _GROUPS[arguments[0]], arguments[1:]
    if arguments[:1] != ["label"]:
        keep_freed_memory()
    try:
        tyro.extras.subcommand_cli_from_dict(commands, prog=program, args=arguments)
    except (ValueError, TypeError, OSError, FloatingPointError) as error:
        if os.environ.get("TEAM_TRACEBACK"):
            raise
        print(f"team: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("team: interrupted; the same command goes on from the last checkpoint", file=sys.stderr)
        sys.exit(130)
