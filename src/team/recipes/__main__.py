"""``python -m team.recipes CELL ...``: train cells one after another where only the training core is installed.

The ``team`` command needs tyro and rich; this needs torch, numpy, pillow and safetensors, which is what GPU machines
tend to have. Start several of these side by side to fill a large GPU. With --results, cells are evaluated on the test
classes as soon as they are trained, so that only JSON files need to be brought back.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

from team.model import load_model
from team.recipes import parse_cell
from team.recipes.partitions import fill_partition
from team.recipes.run import Runner
from team.recipes.tables import TEST_EPISODES
from team.weights import weights_path


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m team.recipes", description=__doc__)
    parser.add_argument("cells", nargs="+", help="e.g. cifar100-conv4-1shot-team or miniimagenet-conv4-semi-1shot-team")
    parser.add_argument("--partitions", type=int, nargs="+", help="only these, of cells that are means over partitions")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of checkpoints and models")
    parser.add_argument("--results", type=Path, help="evaluate the test classes and write result files here")
    parser.add_argument("--root", type=Path, help="official files of the data set, if it is not prepared yet")
    parser.add_argument("--pretrained", help="start from this model of the package, or file, and pre-train nothing")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, help="stop after this long; started again, it goes on")
    parser.add_argument("--quick", action="store_true", help="a few episodes, to see that everything runs")
    chosen = parser.parse_args(arguments)
    try:
        _run(chosen)
    except (ValueError, TypeError, OSError, FloatingPointError) as error:
        sys.exit(f"team.recipes: {error}")


def _run(chosen: argparse.Namespace) -> None:
    runs, results = chosen.runs, chosen.results
    if chosen.quick:
        runs, results = runs / "quick", None if results is None else results / "quick"
    cells = [(cell, *parse_cell(cell)) for cell in chosen.cells]
    runners: dict[str, Runner] = {}
    jobs = []
    for cell, recipe, variant, shots in cells:
        if recipe.name not in runners:
            recipe = recipe.quick() if chosen.quick else recipe
            begun = weights_path(chosen.pretrained) if chosen.pretrained else None
            gpu = chosen.device != "cpu"
            runners[recipe.name] = Runner(recipe, runs, chosen.device, chosen.root, compile=gpu, pretrained=begun)
        runner = runners[recipe.name]
        several = runner.recipe.partitions > 1
        numbers = chosen.partitions if several and chosen.partitions else range(runner.recipe.partitions)
        for number in numbers:
            runner.partition(number)  # says at once if there is no such partition
            jobs.append((number, f"{cell}, partition {number}" if several else cell, runner, variant, shots))
    started = time.monotonic()
    for number, name, runner, variant, shots in sorted(jobs, key=lambda job: job[0]):  # whole partitions first
        left = None if chosen.seconds is None else chosen.seconds - (time.monotonic() - started)
        if left is not None and left <= 0:
            print(f"out of time before {name}", flush=True)
            return
        episodes = (20 if chosen.quick else TEST_EPISODES) // runner.recipe.partitions
        if results is not None and runner.recipe.partitions > 1:
            mean = fill_partition(runner, variant, shots, number, results, episodes=episodes, time_limit=left)
            done, note = mean is not None, f"test, over all partitions so far, {mean}"
        else:
            one = runner.partition(number)
            outcome = one.train_cell(variant, shots, time_limit=left)
            done, note = outcome.complete, f"validation {outcome.best:.2f} %, {outcome.seconds:.0f} s"
            if done and results is not None:
                model = load_model(one.model_path(variant, shots))
                note += f", test {one.evaluate_cell(model, variant, shots, results, episodes=episodes)}"
        if not done:
            print(f"out of time in {name}", flush=True)
            return
        print(f"{name}: {note}", flush=True)


if __name__ == "__main__":
    main()
