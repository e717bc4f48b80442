"""How fast the closed form is, against the paper's formula written down naively and against an SDP solver."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import cycle
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from team.closed_form import MetricSettings, episode_distances
from team.episode import Episode

if TYPE_CHECKING:
    from rich.table import Table

_TURN = 0.25  # seconds one way runs before the other has its turn


@dataclass(frozen=True)
class BenchRow:
    """One measurement: median episodes per second over ``repeats``, and how many times the naive formula's that is."""

    way: str
    dimension: int | None
    episodes_per_second: float | None
    ratio: float | None
    repeats: int
    note: str = ""


def bench_metric(
    dimensions: Sequence[int] = (256, 512, 640, 2048),
    *,
    ways: int = 5,
    shots: int = 1,
    queries: int = 15,
    k: int = 5,
    seconds: float = 5.0,
    batch: int = 16,
    sdp_seconds: float = 60.0,
) -> list[BenchRow]:
    """Measure, in this process and with torch's current number of threads, distances of whole episodes.

    queries: per class; seconds: for each dimension, ours and naive taking turns, so that a busy machine slows both;
    batch: episodes per call of ours; sdp_seconds: the longest solve to wait for, 0 to leave the solver out
    """
    settings, rows = MetricSettings(k=k), []
    for dimension in dimensions:
        rows += _bench_dimension(_random_episode(batch, ways, shots, queries, dimension), settings, seconds)
    if sdp_seconds > 0:
        rows.append(_bench_sdp(lambda d: _random_episode(1, ways, shots, queries, d), settings, sdp_seconds))
    return rows


def naive_distances(support: Tensor, labels: Tensor, query: Tensor, settings: MetricSettings) -> Tensor:
    """Eq. 3 to 10 for one episode as the paper prints them: every pair, every d×d matrix, and its inverse."""
    inverse, prototypes = _naive_inverse(support, labels, query, settings)
    metric = torch.linalg.inv(inverse) + settings.alpha * torch.cov(torch.cat([support, query]).T)
    difference = query[:, None] - prototypes
    return torch.einsum("qnd,de,qne->qn", difference, metric, difference).clamp_min(0).sqrt()


def _naive_inverse(support: Tensor, labels: Tensor, query: Tensor, settings: MetricSettings) -> tuple[Tensor, Tensor]:
    """Y of Eq. 9 with the identity as prior, and the prototypes."""
    prototypes = torch.stack([support[labels == c].mean(0) for c in range(int(labels.max()) + 1)])
    left, right = torch.triu((labels[:, None] == labels).int(), 1).nonzero().T
    nearest = torch.cdist(support, query).topk(settings.k, largest=False).indices
    near = (support[:, None] - query[nearest]).flatten(0, 1)
    must = torch.cat([support[left] - support[right], support - prototypes[labels], near])
    left, right = torch.triu_indices(len(prototypes), len(prototypes), 1)
    cannot = prototypes[left] - prototypes[right]
    pull, push = must.T @ must / len(must), cannot.T @ cannot / max(len(cannot), 1)
    return torch.eye(len(pull), dtype=pull.dtype) + settings.gamma * (pull - settings.lam * push), prototypes


def metric_table(rows: Sequence[BenchRow]) -> Table:
    """The rows as a table to print with rich."""
    from rich.table import Table

    table = Table(title=f"adaptive metric, {torch.get_num_threads()} threads, torch {torch.__version__}")
    for heading in ("way", "d", "episodes/s", "× naive", "repeats", "note"):
        table.add_column(heading, justify="left" if heading in {"way", "note"} else "right")
    for row in rows:
        numbers = (row.dimension, row.episodes_per_second, row.ratio, row.repeats)
        table.add_row(row.way, *("-" if number is None else f"{number:.4g}" for number in numbers), row.note)
    return table


def _random_episode(batch: int, ways: int, shots: int, queries: int, dimension: int) -> Episode:
    """Features of length about one, as of a trained network, with some order in the classes."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(batch, ways, dimension, generator=generator)
    labels = torch.arange(ways).repeat(shots)
    points = centres.repeat(1, shots + queries, 1)
    points = (points + torch.randn(points.shape, generator=generator)) / (2 * dimension) ** 0.5
    return Episode(points[:, : len(labels)].clone(), labels.expand(batch, -1), points[:, len(labels) :].clone(), ways)


def _bench_dimension(episode: Episode, settings: MetricSettings, seconds: float) -> list[BenchRow]:
    batch, dimension = len(episode.support), episode.support.shape[-1]
    singles = cycle(zip(episode.support, episode.labels, episode.query, strict=True))
    with torch.no_grad():
        expected = naive_distances(*next(singles), settings)
        torch.testing.assert_close(episode_distances(episode, settings)[0][0], expected, rtol=1e-3, atol=1e-4)
        turns, until = list[tuple[float, float]](), time.perf_counter() + seconds
        while len(turns) < 3 or time.perf_counter() < until:
            fast = batch * _rate(lambda: episode_distances(episode, settings))
            turns.append((fast, _rate(lambda: naive_distances(*next(singles), settings))))
    ours, naive = (median(rates) for rates in zip(*turns, strict=True))
    first = BenchRow("ours", dimension, ours, ours / naive, len(turns), f"batches of {batch}")
    return [first, BenchRow("naive formula", dimension, naive, 1.0, len(turns), "one by one, float32, with inv")]


def _rate(work: Callable[[], object]) -> float:
    """Calls per second over one turn."""
    start, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - start < _TURN:
        work()
        calls += 1
    return calls / (time.perf_counter() - start)


def _bench_sdp(make: Callable[[int], Episode], settings: MetricSettings, seconds: float) -> BenchRow:
    """Eq. 8 for one episode with cvxpy, at the largest d that ends in time; more than 32 can take all the memory."""
    try:
        cvxpy: Any = import_module("cvxpy")
    except ImportError:
        return BenchRow("SDP solver", None, None, None, 0, "not measured: cvxpy is not installed")
    row = BenchRow("SDP solver", None, None, None, 0, f"no answer after {seconds:.0f} s")
    for dimension in (8, 16, 32):
        episode = make(dimension)
        inverse, _ = _naive_inverse(episode.support[0], episode.labels[0], episode.query[0], settings)
        metric = cvxpy.Variable((dimension, dimension), PSD=True)
        loss = cvxpy.trace(metric @ inverse.double().numpy()) - cvxpy.log_det(metric)
        problem, start = cvxpy.Problem(cvxpy.Minimize(loss)), time.perf_counter()
        with suppress(cvxpy.SolverError):
            problem.solve(solver=cvxpy.CLARABEL, time_limit=seconds)
        if problem.status != cvxpy.OPTIMAL:
            break
        rate = 1 / (time.perf_counter() - start)
        row = BenchRow("SDP solver", dimension, rate, None, 1, "one Eq. 8 by cvxpy and Clarabel; no larger d tried")
    return row
