"""What stays of an earlier leaderboard when a new run is written over it."""

from __future__ import annotations

from typing import Any

from team.leaderboard.run import COLUMN, Cell
from team.leaderboard.selection import Selection
from team.recipes import RECIPES


def keep_others(board: dict[str, Any], earlier: dict[str, Any], selection: Selection) -> dict[str, Any]:
    """The leaderboard, and what an earlier one with episodes of the same seed has beyond this selection.

    Other tables stay, also those whose weights are no longer there. In a table that was run, a figure of another method
    stays if this run found its reference, with which it was compared episode by episode, as it was; beside such figures
    so do those that came out the same again, as speeds can be compared only within a run. Tables stand in the order of
    the recipes, whichever ran last.
    """
    if earlier.get("about") != board["about"]:
        return board
    ran = {cell["recipe"] for cell in board["cells"]}
    now, before = ({_place(cell): cell for cell in one["cells"]} for one in (board, earlier))

    def same(place: tuple[Any, ...]) -> bool:
        return place in now and place in before and now[place]["mean"] == before[place]["mean"]

    def stays(cell: Cell) -> bool:
        if cell["recipe"] not in ran:
            return True
        if _place(cell) in now or cell["paired"] is None:
            return False
        return same(_place(cell | {"method": cell["paired"]["to"], "weights": cell["paired"]["weights"]}))

    kept = [cell for cell in earlier["cells"] if stays(cell)]
    beside = {cell["recipe"] for cell in kept}
    cells = [before[at] if cell["recipe"] in beside and same(at) else cell for at, cell in now.items()] + kept
    order = {name: number for number, name in enumerate(RECIPES)}
    cells.sort(key=lambda cell: order.get(cell["recipe"], len(order)))
    return board | {"cells": cells, "not_run": _not_run(board, earlier, selection, cells)}


def _not_run(
    board: dict[str, Any], earlier: dict[str, Any], selection: Selection, cells: list[Cell]
) -> list[dict[str, Any]]:
    """What this run and, of what it was not asked for, the earlier one could not run, and no cell shows."""
    asked, methods = selection.recipes(), {name for weights in selection.weights() for name in weights.methods}
    others = [one for one in earlier["not_run"] if one["recipe"] not in asked or not methods & set(one["methods"])]
    shown = {(cell["weights"], cell["method"]) for cell in cells}
    entries = [
        one | {"methods": [name for name in one["methods"] if (one["weights"], name) not in shown]}
        for one in board["not_run"] + others
    ]
    return [one for one in entries if one["methods"]]


def _place(cell: Cell) -> tuple[Any, ...]:
    """What a cell is the figure of."""
    return tuple(cell[key] for key in (*COLUMN, "method", "weights"))
