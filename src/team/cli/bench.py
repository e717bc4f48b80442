"""``team bench metric | train``."""

from __future__ import annotations

from typing import Literal

from team.cli.shared import choose_device


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

    where = choose_device(device)
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
