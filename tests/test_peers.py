"""Claims about `results/bench/peers.json`: our methods give what the implementations of others give."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from team import list_methods

REPORT: dict[str, Any] = json.loads((Path(__file__).parents[1] / "results/bench/peers.json").read_text("utf-8"))
ROWS: list[dict[str, Any]] = REPORT["comparisons"]
DEMANDED = [row for row in ROWS if not row["differs"]]
SLACK = 0.1  # points of accuracy; a few queries on the border between two classes fall by rounding


def of(row: dict[str, Any]) -> str:
    return f"{row['method']} and {row['repository']}, {row['implementation']}"


def test_every_method_is_compared_or_has_a_reason_not_to_be() -> None:
    assert set(list_methods()) == {row["method"] for row in DEMANDED} | set(REPORT["not_run"])
    assert all(REPORT["not_run"].values())


def test_every_comparison_was_made_on_all_data_sets_and_shots() -> None:
    cells = Counter((row["dataset"], row["shots"]) for row in ROWS)
    assert set(cells) == {(dataset, shots) for dataset in ("miniimagenet", "cub") for shots in (1, 5)}
    assert len(set(cells.values())) == 1


@pytest.mark.parametrize("row", DEMANDED, ids=lambda row: f"{of(row)}, {row['dataset']} {row['shots']}-shot")
def test_our_accuracy_lies_within_the_interval_of_theirs(row: dict[str, Any]) -> None:
    assert abs(row["ours"]["mean"] - row["theirs"]["mean"]) <= row["theirs"]["ci95"]


@pytest.mark.parametrize("name", sorted({of(row) for row in DEMANDED}))
def test_no_difference_is_left_between_the_same_episodes(name: str) -> None:
    """The mean of the paired differences over all data sets and shots, which is far more sharply known."""
    rows = [row["difference"] for row in DEMANDED if of(row) == name]
    mean = sum(row["mean"] for row in rows) / len(rows)
    interval = math.sqrt(sum(row["ci95"] ** 2 for row in rows)) / len(rows)
    assert abs(mean) <= interval + SLACK
