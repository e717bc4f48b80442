"""The paper's figures: accuracy against shots (from result files) and the sparsity of an oracle metric (Fig. 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from team.data.sampler import EpisodeSampler
from team.evaluation.embed import embed
from team.evaluation.sparsity import analyse_sparsity, plot_sparsity
from team.files import write_json
from team.model import load_model
from team.recipes import RECIPES
from team.recipes.run import Runner
from team.recipes.tables import PAPER
from team.report.figure import colour, figure, marker
from team.results import Result
from team.seeding import generator
from team.weights import weights_path

_SPARSITY_WEIGHTS = "miniimagenet-conv4-5shot-team"


def reproduce_sparsity(
    results: Path, *, root: Path | None = None, device: str = "cpu", tasks: int = 4, seed: int = 0
) -> list[dict[str, Any]]:
    """Oracle metrics of 5-way 5-shot tasks with 15 queries; writes ``figures/sparsity.json`` and the first as picture.

    Uses test classes of miniImageNet and the weights that came with the package. Nothing is chosen by it.
    """
    model = load_model(weights_path(_SPARSITY_WEIGHTS))
    images = Runner(RECIPES[model.info["recipe"]], Path("runs"), device, root).images("test")
    sampler = EpisodeSampler(images.labels, ways=5, shots=5, queries=15)
    drawn = sampler.sample(tasks, generator(seed, "sparsity"))
    rows = []
    for task in range(tasks):
        index = torch.cat([drawn.support[task], drawn.query[task]])
        labels = torch.cat([drawn.support_labels[task], drawn.query_labels[task]])
        features = embed(model.network.to(device), images.images[index.to(device)], size=model.size).cpu()
        sparsity = analyse_sparsity(features, labels)
        rows.append({"task": task} | sparsity.summary())
        if task == 0:
            plot_sparsity(sparsity, results / "figures" / "sparsity.png")
    about = {"weights": _SPARSITY_WEIGHTS, "seed": seed, "data": images.checksum, "tasks": rows}
    write_json(results / "figures" / "sparsity.json", about)
    return rows


def plot_shots(results: dict[str, Result], path: Path) -> bool:
    """Accuracy against shots on miniImageNet, ours with intervals beside the paper's; False if there is nothing yet."""
    series = {}
    for variant in ("baseline", "team"):
        cells = {shots: results.get(f"miniimagenet-conv4-{shots}shot-{variant}") for shots in (1, 3, 5, 7, 9)}
        series[variant] = {shots: result for shots, result in cells.items() if result is not None}
    if not any(series.values()):
        return False
    with figure(path, 7.0, 4.6) as drawing:
        axes = drawing.subplots()
        for number, (variant, found) in enumerate(series.items()):
            name = "TEAM" if variant == "team" else "baseline"
            means, intervals = [r.mean for r in found.values()], [r.ci95 for r in found.values()]
            style: Any = {"color": colour(number), "marker": marker(number)}
            axes.errorbar(list(found), means, intervals, capsize=3, label=f"{name}, ours", **style)
            paper = {s: PAPER[n, v, s] for n, v, s in PAPER if (n, v) == ("miniimagenet-conv4", variant)}
            paper = dict(sorted(paper.items()))
            axes.plot(list(paper), list(paper.values()), linestyle=":", mfc="none", label=f"{name}, paper", **style)
        axes.set(title="miniImageNet, 5-way, ConvNet", xlabel="shots", ylabel="test accuracy, %")
        axes.set_xticks([1, 3, 5, 7, 9])
        axes.grid(alpha=0.25)
        axes.legend()
    return True
