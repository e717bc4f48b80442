"""All methods × data sets × shots × samplings in one table, from weights that came with the package or are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from team.files import write_json
from team.leaderboard.selection import Selection


def write_leaderboard(
    selection: Selection, results: Path, *, choose: bool = False, device: str = "cpu", root: Path | None = None
) -> dict[str, Any]:
    """Run the selection and write ``leaderboard.md`` and, in the folder ``leaderboard``, its JSON and its plot.

    What the selection does not ask for stays there, see :func:`team.leaderboard.earlier.keep_others`.
    choose: choose settings on validation classes first; otherwise those of ``leaderboard/settings.json`` are used
    """
    from team.leaderboard.earlier import keep_others
    from team.leaderboard.run import read_board, read_settings, run, tune

    folder = results / "leaderboard"
    earlier = read_board(folder / "leaderboard.json")
    settings = tune(selection, folder / "settings.json", device=device, root=root) if choose else None
    board = run(selection, settings or read_settings(folder / "settings.json"), device=device, root=root)
    board = keep_others(board, earlier, selection)
    write_json(folder / "leaderboard.json", board)
    write_report(board, results)
    return board


def write_report(board: dict[str, Any], results: Path) -> None:
    """Write ``leaderboard.md`` and ``leaderboard/speed.png`` from the JSON values of a leaderboard alone."""
    from team.leaderboard.plot import plot_speed
    from team.leaderboard.report import write_markdown

    picture = results / "leaderboard" / "speed.png"
    plot_speed(board, picture)
    write_markdown(board, results / "leaderboard.md", picture)


__all__ = ["Selection", "write_leaderboard", "write_report"]
