"""``python -m team.recipes CELL ...``: train cells one after another where only the training core is installed.

The ``team`` command needs tyro and rich; this needs torch, numpy, pillow and safetensors, which is what GPU machines
tend to have. Start several of these side by side to fill a large GPU.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from team.recipes import parse_cell
from team.recipes.run import Runner


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m team.recipes", description=__doc__)
    parser.add_argument("cells", nargs="+", help="e.g. cifar100-conv4-1shot-team")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of checkpoints and models")
    parser.add_argument("--root", type=Path, help="official files of the data set, if it is not prepared yet")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, help="stop after this long; started again, it goes on")
    chosen = parser.parse_args(arguments)
    cells = [(cell, *parse_cell(cell)) for cell in chosen.cells]
    runners: dict[str, Runner] = {}
    started = time.monotonic()
    for cell, recipe, variant, shots in cells:
        if recipe.name not in runners:
            compiled = chosen.device != "cpu"
            runners[recipe.name] = Runner(recipe, chosen.runs, chosen.device, chosen.root, compile=compiled)
        left = None if chosen.seconds is None else chosen.seconds - (time.monotonic() - started)
        if left is not None and left <= 0:
            print(f"out of time before {cell}", flush=True)
            return
        outcome = runners[recipe.name].train_cell(variant, shots, time_limit=left)
        print(f"{cell}: validation {outcome.best:.2f} %, {outcome.seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
