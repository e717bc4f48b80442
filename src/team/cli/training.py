"""``team train`` and ``team evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from team.cli.shared import Name, choose_device


def train(
    cell: Name,
    method: str | None = None,
    root: Path | None = None,
    runs: Path = Path("runs"),
    device: str = "auto",
    pretrained: str = "",
) -> None:
    """Train one cell of the tables by its recipe, e.g. cifar100-conv4-1shot-team; goes on where it was interrupted.

    The built-in glyphs need no files and little time: team train glyphs-conv4-1shot --method tpn
    On several GPUs or processes: torchrun --nproc-per-node 2 -m team.cli train CELL

    Args:
        cell: Data set, network, shots and, unless given as --method, what to train.
        method: A row of the ablation (baseline, tim, eam, team), team+, relationnet, tpn, gnn, maml, maml+ or reptile.
        root: Official files of the data set, if it is not prepared yet.
        runs: Folder for checkpoints, metrics and the trained model.
        device: auto, cpu or cuda.
        pretrained: Start from this model, a file or e.g. cub-conv4-pretrained of the package, and not from one
            that is pre-trained first.
    """
    from team.recipes import parse_cell
    from team.recipes.run import Runner
    from team.training.distributed import start
    from team.weights import weights_path

    begun = weights_path(pretrained) if pretrained else None
    recipe, variant, shots = parse_cell(cell if method is None else f"{cell}-{method}")
    world, where = start(choose_device(device))
    runner = Runner(
        recipe, runs, where, root, compile=where != "cpu" and world.size == 1, world=world, pretrained=begun
    )
    outcome = runner.train_cell(variant, shots)
    world.leave()
    if not world.first:
        return
    print(f"validation accuracy {outcome.best:.2f} %; the model is {runner.model_path(variant, shots)}")


def evaluate(
    name: Name = "",
    weights: str = "",
    root: Path | None = None,
    shots: int | None = None,
    episodes: int = 1000,
    seed: int = 0,
    sampling: Literal["balanced", "dirichlet", "uniform"] = "balanced",
    concentration: float = 2.0,
    present: int | None = None,
    results: Path | None = None,
    device: str = "auto",
) -> None:
    """Evaluate trained weights on test episodes of the data set they were trained for.

    Args:
        name: Name of weights that came with the package, or a model.safetensors of one's own.
        weights: The same, as an option.
        root: Official files of the data set, if it is not prepared yet.
        shots: Other than what the weights were trained for.
        episodes: Number of test episodes.
        seed: Decides which episodes.
        sampling: How queries are drawn over the classes of an episode.
        concentration: Of the Dirichlet distribution.
        present: Only so many of the classes have queries; all by default.
        results: Also write a result file into this folder.
        device: auto, cpu or cuda.
    """
    from team.data.sampling import Sampling
    from team.model import load_model
    from team.recipes import RECIPES
    from team.recipes.run import Runner
    from team.weights import weights_path

    if bool(name) == bool(weights):
        raise ValueError("name the weights once, e.g. team evaluate cifar100-conv4-5shot-team")
    name = name or weights
    drawing = Sampling(sampling, concentration, present)
    path = weights_path(name)
    model = load_model(path)
    if model.info.get("recipe") not in RECIPES:
        raise ValueError(f"{name} is no cell that a recipe of this version trained, so its data set is not known")
    runner = Runner(RECIPES[model.info["recipe"]], Path("runs"), choose_device(device), root)
    shots = shots or int(model.info["training"]["settings"]["shots"])
    variant = model.info["variant"]
    result = runner.evaluate_cell(
        model, variant, shots, results, episodes=episodes, seed=seed, sampling=drawing, weights=path
    )
    print(
        f"{name}: {result} % on {episodes} test episodes of {result.facts['dataset']}, {shots}-shot, {drawing} "
        f"queries; calibration error {result.facts['calibration_error']:.1f} %"
    )
