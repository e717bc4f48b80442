"""The command line: parse, call, print. Each command is a function whose parameters are its flags."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

Name = Annotated[str, tyro.conf.Positional]


def demo(out: Path = Path("team-demo"), seed: int = 0, quick: bool = False) -> None:
    """Train a small network on built-in images, compare TEAM with its baseline, write a report (two minutes).

    Args:
        out: Folder for the report; a demo that was interrupted goes on from there.
        seed: Decides images, weights and episodes.
        quick: Seconds instead of minutes, to see that everything runs; the figures then mean nothing.
    """
    from team.demo import run_demo

    run_demo(out, seed=seed, quick=quick)


def prepare(
    name: Name,
    root: Path,
    split: str | None = None,
    size: int = 84,
    crop: bool = True,
    encoding: Literal["exact", "jpeg"] = "exact",
    parts: tuple[str, ...] = ("train", "val", "test"),
) -> None:
    """Read a data set from its official files, once, into the cache.

    Args:
        name: cifar100, miniimagenet, cub, or folder (one's own class/image.jpg).
        root: Folder that holds the official archive or what was unpacked from it.
        split: Class split: a name, a JSON file, or for a folder fractions such as 0.64-0.16-0.2@0.
        size: Side of the stored images.
        crop: CUB: cut out the bounding boxes.
        encoding: Lossless, or JPEG of quality 95 where files must be small.
        parts: Which parts of the split to prepare.
    """
    from team.data import prepare as prepare_data

    done = prepare_data(name, root, split=split, size=size, crop=crop, encoding=encoding, parts=parts)
    for part, index in done.items():
        print(f"{part}: {index.images} images of {len(index.classes)} classes in {len(index.shards)} shards")


def info(
    name: Name,
    root: Path | None = None,
    split: str | None = None,
    size: int = 84,
    crop: bool = True,
    encoding: Literal["exact", "jpeg"] = "exact",
    sheet: Path | None = None,
    part: str = "train",
) -> None:
    """Show classes, counts and checksums of a data set, and write a sheet of sample images.

    Args:
        name: cifar100, miniimagenet, cub, or folder.
        root: The folder, for a data set of one's own.
        split: Class split, as for prepare.
        size: Side of the stored images.
        crop: CUB: bounding boxes cut out.
        encoding: As prepared.
        sheet: Write sample images to this PNG file.
        part: The part the sheet shows.
    """
    from rich.console import Console
    from rich.table import Table

    from team.data import contact_sheet, load
    from team.data import info as data_info

    about = data_info(name, root=root, split=split, size=size, crop=crop, encoding=encoding)
    table = Table(title=f"{about.title}, split {about.split}, {about.size}×{about.size}", caption=str(about.folder))
    for heading in ("part", "classes", "images", "per class", "shards", "MiB", "checksum"):
        table.add_column(heading)
    for which, entry in about.parts.items():
        if not entry.prepared:
            note = entry.problem or "not prepared"
            table.add_row(which, str(len(entry.classes) or "?"), note)
            continue
        per_class = f"{entry.smallest}" if entry.smallest == entry.largest else f"{entry.smallest} to {entry.largest}"
        size_text = f"{entry.bytes / 2**20:.0f}"
        counts = (str(len(entry.classes)), str(entry.images), per_class, str(entry.shards), size_text)
        table.add_row(which, *counts, entry.checksum[:12])
    Console().print(table)
    print(f"splits: {', '.join(about.splits)}")
    if sheet is not None:
        images = load(name, part, root=root, split=split, size=size, crop=crop, encoding=encoding)
        print(f"sample images: {contact_sheet(images, sheet)}")


def download(name: Name, root: Path) -> None:
    """Download a data set from its official address (resumes, checks), or say how to get it by hand.

    Args:
        name: cifar100 or cub.
        root: Folder to put the archive into.
    """
    from team.data import download as fetch

    print(f"downloaded: {fetch(name, root)}")


def train(
    cell: Name,
    method: str | None = None,
    root: Path | None = None,
    runs: Path = Path("runs"),
    device: str = "auto",
) -> None:
    """Train one cell of the tables by its recipe, e.g. cifar100-conv4-1shot-team; goes on where it was interrupted.

    The built-in glyphs need no files and little time: team train glyphs-conv4-1shot --method tpn
    On several GPUs or processes: torchrun --nproc-per-node 2 -m team.cli train CELL

    Args:
        cell: Data set, network, shots and, unless given as --method, what to train.
        method: A row of the ablation (baseline, tim, eam, team), or relationnet, tpn, gnn, maml, maml+ or reptile.
        root: Official files of the data set, if it is not prepared yet.
        runs: Folder for checkpoints, metrics and the trained model.
        device: auto, cpu or cuda.
    """
    from team.recipes import parse_cell
    from team.recipes.run import Runner
    from team.training.distributed import start

    recipe, variant, shots = parse_cell(cell if method is None else f"{cell}-{method}")
    world, where = start(_device(device))
    runner = Runner(recipe, runs, where, root, compile=where != "cpu" and world.size == 1, world=world)
    outcome = runner.train_cell(variant, shots)
    if not world.first:
        return
    print(f"validation accuracy {outcome.best:.2f} %; the model is {runner.model_path(variant, shots)}")


def evaluate(
    weights: Name,
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
        weights: Name of weights that came with the package, or a model.safetensors of one's own.
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

    drawing = Sampling(sampling, concentration, present)
    model = load_model(weights_path(weights))
    if model.info.get("recipe") not in RECIPES:
        raise ValueError(f"{weights} was not made by a recipe of this version, so its data set is not known")
    runner = Runner(RECIPES[model.info["recipe"]], Path("runs"), _device(device), root)
    shots = shots or int(model.info["training"]["settings"]["shots"])
    variant = model.info["variant"]
    result = runner.evaluate_cell(model, variant, shots, results, episodes=episodes, seed=seed, sampling=drawing)
    print(
        f"{weights}: {result} % on {episodes} test episodes of {result.facts['dataset']}, {shots}-shot, {drawing} "
        f"queries; calibration error {result.facts['calibration_error']:.1f} %"
    )


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
        table: table1 (miniImageNet), table2 (CIFAR-100), table3 (CUB), ablation, shots, or sparsity (Fig. 3).
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

        tasks = reproduce_sparsity(results, root=root, device=_device(device))
        print(json.dumps(tasks, indent=2))
        print(f"written: {results / 'figures' / 'sparsity.png'}", file=sys.stderr)
        return
    if quick:
        results, runs = results / "quick", runs / "quick"
    rows = run(
        table, results=results, runs=runs, root=root, device=_device(device), only=only, quick=quick, retrain=retrain
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
    format: Literal["text", "markdown", "json"] = "text",
) -> None:
    """Compare methods on the same features and episodes: accuracy, calibration, speed; goes on where interrupted.

    Args:
        methods: Which ones; all of them if none is named.
        datasets: miniimagenet, cifar100, cub.
        backbones: conv4, resnet18, where there are weights.
        networks: Weights that give the features, by what they were trained as (baseline, tim, eam, team).
        shots: Support images per class.
        samplings: How queries are drawn: balanced, dirichlet, uniform.
        concentration: Of the Dirichlet distribution.
        present: Only so many of the 5 classes have queries; all by default.
        episodes: Test episodes for each figure.
        seed: Decides which episodes.
        tune: Choose the methods' settings on validation classes first, and keep them in the results folder.
        weights: Folder of model files of one's own, named like those of the package.
        root: Official files of the data sets, if they are not prepared yet.
        results: leaderboard.md goes here; JSON, settings and the plot into its folder leaderboard.
        device: auto, cpu or cuda.
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
        folder=weights,
    )
    board = write_leaderboard(chosen, results, choose=tune, device=_device(device), root=root)
    if format == "json":
        print(json.dumps(board, indent=2))
    elif format == "markdown":
        print((results / "leaderboard.md").read_text(encoding="utf-8"))
    else:
        from rich.console import Console

        from team.leaderboard.report import terminal_tables

        Console().print(*terminal_tables(board))
    print(f"written: {results / 'leaderboard.md'}", file=sys.stderr)


def label(
    folder: Annotated[Path | None, tyro.conf.Positional] = None,
    labels: Path | None = None,
    out: Path | None = None,
    to: Literal["csv", "folders", "imagefolder", "coco", "label-studio"] = "csv",
    link: bool = False,
    subfolders: bool = False,
    embedder: str | None = None,
    method: str | None = None,
    demo: bool = False,
    session: Path | None = None,
    port: int = 0,
    browser: bool = True,
) -> None:
    """Label a folder of images from a few labels: on a local page, or, with --out, at once.

    Args:
        folder: Folder of images of any kind, sub-folders included; its files are only read.
        labels: Table (CSV) of the labels there are: path, label. With --out, names of sub-folders serve without it.
        out: Write all labels here and open no page: a file, or a new folder for folders and imagefolder.
        to: Form of the output; folders: one per class; imagefolder: Hugging Face's; the others are files.
        link: Links in place of copies of the images.
        subfolders: Names of sub-folders are labels beside those of the table.
        embedder: Name or file of weights of ours, in place of EfficientNet-Lite0.
        method: Any method, by name, in place of the default.
        demo: Show all this on pictures drawn for it, in the folder --out (team-label-demo).
        session: File in which the page keeps every action; one per folder in the user's data folder, if not given.
        port: Of the page; 0 takes a free one.
        browser: Open the page in a browser.
    """
    from team.labelling.embedders import find_embedder
    from team.labelling.export import check_destination
    from team.labelling.folder import label_folder

    if demo:
        from team.labelling.demo import run_demo

        run_demo(out or Path("team-label-demo"), method=method)
        return
    if folder is None:
        raise ValueError("give the folder of images to label, or --demo to see an example")
    network = None if embedder is None else find_embedder(embedder)
    if out is None:
        try:
            from team.labelling.server import serve
        except ModuleNotFoundError as error:
            raise ValueError(f"the page needs {error.name}: pip install 'team[label]'") from error
        serve(
            folder,
            labels=labels,
            subfolders=subfolders,
            session=session,
            port=port,
            open_browser=browser,
            embedder=network,
            method=method,
        )
        return
    check_destination(folder, out, to)
    result = label_folder(folder, labels, subfolders=subfolders or None, embedder=network, method=method)
    result.export(out, to, link=link)
    for path, reason in result.skipped:
        print(f"skipped {path!r}: {reason}", file=sys.stderr)
    given = sum(row.source == "human" for row in result.rows)
    print(f"{len(result.rows)} images of {len(result.classes)} classes, {given} of them labelled by you: {out}")


def bench_metric(seconds: float = 5.0, threads: int = 0, sdp: bool = True) -> None:
    """Distances per second: ours, the paper's formula written naively, and an SDP solver, in one run.

    Args:
        seconds: Time for each dimension.
        threads: Threads for torch; 0 leaves its choice.
        sdp: Also measure a solver (needs cvxpy).
    """
    import torch
    from rich.console import Console

    from team.bench import bench_metric as measure
    from team.bench import metric_table

    if threads > 0:
        torch.set_num_threads(threads)
    Console().print(metric_table(measure(seconds=seconds, sdp_seconds=60.0 if sdp else 0.0)))


def bench_train(
    device: str = "auto",
    backbone: Literal["conv4", "resnet18"] = "conv4",
    shots: int = 1,
    seconds: float = 5.0,
) -> None:
    """Training episodes per second: ours beside the plain loop (one episode, float32, data loader), in one run.

    Args:
        device: auto, cpu or cuda.
        backbone: Network, at the paper's input size.
        shots: Support images per class.
        seconds: Time for each setting.
    """
    from rich.console import Console
    from rich.table import Table

    from team.backbones import INPUT_SIZE
    from team.training.benchmark import bench_training

    where = _device(device)
    rates = bench_training(
        device=where,
        backbone=backbone,
        size=INPUT_SIZE[backbone],
        shots=shots,
        seconds=seconds,
        compile=(False,) if where == "cpu" else (False, True),
        per_step=(1, 4) if where == "cpu" else (1, 4, 16, 32),
    )
    table = Table(title=f"training, {backbone}, {shots}-shot, {where}")
    for heading in ("loop", "episodes per step", "episodes/s", "× plain"):
        table.add_column(heading, justify="right" if heading != "loop" else "left")
    for rate in rates:
        table.add_row(rate.name, str(rate.per_step), f"{rate.rate:.1f}", f"{rate.rate / rates[0].rate:.1f}")
    Console().print(table)


_GROUPS: dict[str, dict[str, Callable[..., Any]]] = {
    "data": {"prepare": prepare, "info": info, "download": download},
    "bench": {"metric": bench_metric, "train": bench_train},
}


def data() -> None:
    """Prepare, describe or download data sets (see team data --help)."""


def bench() -> None:
    """Measure speed (see team bench --help)."""


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


def _device(wanted: str) -> str:
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted not in ("cpu", "cuda"):
        raise ValueError(f"device must be auto, cpu or cuda, not {wanted!r}")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError("there is no CUDA device here; use --device cpu")
    return wanted


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


if __name__ == "__main__":
    main()
