"""Episodes per second of team+ beside TIM's gradient form and PT-MAP, in one run: python benchmarks/speed_team_plus.py

Features are drawn at random, as speed does not depend on what they mean. Methods take turns, so that a machine that is
busy for a while slows them all, and ratios are those of the same turn.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

from team import create_method
from team.files import write_json
from team.methods.base import Method
from team.provenance import commit, hardware

METHODS: dict[str, dict[str, Any]] = {
    "team+": {},
    "tim": {"form": "gradient"},
    "pt-map": {},
    "team": {},
    "protonet": {},
}
WAYS, QUERIES, WIDTH, BATCH, TURNS = 5, 15, 256, 64, 5


def rate(method: Method, shots: int, seconds: float, random: torch.Generator) -> float:
    support = torch.randn(BATCH, WAYS * shots, WIDTH, generator=random)
    query = torch.randn(BATCH, WAYS * QUERIES, WIDTH, generator=random)
    labels = torch.arange(WAYS).repeat_interleave(shots).expand(BATCH, -1)
    done, start = 0, time.perf_counter()
    while done == 0 or time.perf_counter() - start < seconds:
        method(support, labels, query)
        done += BATCH
    return done / (time.perf_counter() - start)


@torch.no_grad()
def main(results: Path = Path("results/bench/speed-team-plus.json"), seconds: float = 1.0) -> None:
    rows = []
    for shots in (1, 5):
        methods = {name: create_method(name, **options) for name, options in METHODS.items()}
        random = torch.Generator().manual_seed(0)
        turns = [{name: rate(method, shots, seconds, random) for name, method in methods.items()} for _ in range(TURNS)]
        for name in methods:
            rows.append(
                {
                    "method": name,
                    "options": METHODS[name],
                    "shots": shots,
                    "episodes_per_second": round(median(turn[name] for turn in turns), 1),
                    "team_plus_is_faster_by": round(median(turn["team+"] / turn[name] for turn in turns), 2),
                }
            )
            print(rows[-1])
    about = {"features": WIDTH, "batch": BATCH, "torch": torch.__version__, "hardware": hardware("cpu")}
    write_json(results, about | {"commit": commit(), "rows": rows})


if __name__ == "__main__":
    main()
