"""How fast the closed form is, against the paper's formula written down naively and against an SDP solver."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from team.closed_form import MetricSettings, episode_distances
from team.episode import Episode

if TYPE_CHECKING:
    from rich.table import Table

_SDP_DIMENSIONS = (4, 8, 16, 32, 64, 128)
_SDP_GROWTH = 40  # doubling d multiplies an interior point solver's time by less than this


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
    batch: int = 64,
    sdp_seconds: float = 60.0,
    seed: int = 0,
) -> list[BenchRow]:
    """Measure, in this process and with torch's current number of threads, distances of whole episodes.

    queries: per class; seconds: for each dimension, ours and naive taking turns, so that a busy machine slows both;
    batch: episodes per call of ours; sdp_seconds: for the solver as a whole, 0 to leave it out
    """
    settings = MetricSettings(k=k)
    rows = []
    for dimension in dimensions:
        episode = _random_episode(batch, ways, shots, queries, dimension, seed)
        rows += _bench_dimension(episode, settings, seconds)
    if sdp_seconds > 0:
        rows.append(_bench_sdp(lambda d: _random_episode(1, ways, shots, queries, d, seed), settings, sdp_seconds))
    return rows


def naive_distances(support: Tensor, labels: Tensor, query: Tensor, settings: MetricSettings) -> Tensor:
    """Eq. 3 to 10 for one episode as the paper prints them: every pair, every d×d matrix, and its inverse."""
    metric = torch.linalg.inv(_naive_inverse(support, labels, query, settings))
    metric = metric + settings.alpha * torch.cov(torch.cat([support, query]).T)
    difference = query[:, None] - _naive_prototypes(support, labels)
    return torch.einsum("qnd,de,qne->qn", difference, metric, difference).clamp_min(0).sqrt()


def _naive_prototypes(support: Tensor, labels: Tensor) -> Tensor:
    return torch.stack([support[labels == c].mean(0) for c in range(int(labels.max()) + 1)])


def _naive_inverse(support: Tensor, labels: Tensor, query: Tensor, settings: MetricSettings) -> Tensor:
    """Y of Eq. 9 with the identity as prior."""
    prototypes = _naive_prototypes(support, labels)
    left, right = torch.triu_indices(len(labels), len(labels), 1)
    same = labels[left] == labels[right]
    nearest = torch.cdist(support, query).topk(settings.k, largest=False).indices
    near = (support[:, None] - query[nearest]).flatten(0, 1)
    must = torch.cat([support[left[same]] - support[right[same]], support - prototypes[labels], near])
    left, right = torch.triu_indices(len(prototypes), len(prototypes), 1)
    cannot = prototypes[left] - prototypes[right]
    identity = torch.eye(support.shape[-1], dtype=support.dtype)
    pull, push = must.T @ must / len(must), cannot.T @ cannot / max(len(cannot), 1)
    return identity + settings.gamma * pull - settings.gamma * settings.lam * push


def metric_table(rows: Sequence[BenchRow]) -> Table:
    """The rows as a table to print with rich."""
    from rich.table import Table

    table = Table(title=f"adaptive metric, {torch.get_num_threads()} threads, torch {torch.__version__}")
    table.add_column("way")
    for heading in ("d", "episodes/s", "× naive", "repeats"):
        table.add_column(heading, justify="right")
    table.add_column("note")
    for row in rows:
        rate = "-" if row.episodes_per_second is None else f"{row.episodes_per_second:,.3g}"
        ratio = "-" if row.ratio is None else f"{row.ratio:.1f}"
        table.add_row(row.way, str(row.dimension or "-"), rate, ratio, str(row.repeats), row.note)
    return table


def _random_episode(batch: int, ways: int, shots: int, queries: int, dimension: int, seed: int) -> Episode:
    """Features of length about one, as of a trained network, with some order in the classes."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(batch, ways, dimension, generator=generator)
    labels = torch.arange(ways).repeat(shots)
    support = centres[:, labels] + torch.randn(batch, ways * shots, dimension, generator=generator)
    query = centres.repeat(1, queries, 1) + torch.randn(batch, ways * queries, dimension, generator=generator)
    scale = (2 * dimension) ** -0.5
    return Episode(support * scale, labels.expand(batch, -1), query * scale, ways)


def _bench_dimension(episode: Episode, settings: MetricSettings, seconds: float) -> list[BenchRow]:
    support, labels, query = episode.support, episode.labels, episode.query
    batch, dimension = len(support), support.shape[-1]
    ours, naive = [], []
    with torch.no_grad():
        expected = naive_distances(support[0], labels[0], query[0], settings)
        torch.testing.assert_close(episode_distances(episode, settings)[0][0], expected, rtol=1e-3, atol=1e-4)
        until = time.perf_counter() + seconds
        while len(ours) < 3 or time.perf_counter() < until:
            ours.append(batch / _seconds(lambda: episode_distances(episode, settings)))
            index = len(naive) % batch
            naive.append(1 / _seconds(lambda i=index: naive_distances(support[i], labels[i], query[i], settings)))
    fast, slow = statistics.median(ours), statistics.median(naive)
    return [
        BenchRow("ours", dimension, fast, fast / slow, len(ours), f"batches of {batch}"),
        BenchRow("naive formula", dimension, slow, 1.0, len(naive), "one episode at a time, float32, torch.linalg.inv"),
    ]


def _bench_sdp(make: Callable[[int], Episode], settings: MetricSettings, seconds: float) -> BenchRow:
    """Eq. 8 for one episode with cvxpy, at the largest dimension that is sure to end in the time that is left."""
    try:
        import cvxpy
    except ImportError:
        return BenchRow("SDP solver", None, None, None, 0, "not measured: cvxpy is not installed")
    start, spent, done = time.perf_counter(), 0.0, 0
    for dimension in _SDP_DIMENSIONS:
        if time.perf_counter() - start + _SDP_GROWTH * spent > seconds:
            break
        episode = make(dimension)
        one = (episode.support[0].double(), episode.labels[0], episode.query[0].double())
        inverse = _naive_inverse(*one, settings).numpy()
        metric = cvxpy.Variable((dimension, dimension), PSD=True)
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(metric @ inverse) - cvxpy.log_det(metric)))
        spent, done = _seconds(lambda p=problem: p.solve(solver=cvxpy.CLARABEL)), dimension
    note = f"cvxpy with Clarabel, Eq. 8 alone, {spent:.2g} s; larger d would not end within {seconds:.0f} s"
    return BenchRow("SDP solver", done, 1 / spent, None, 1, note)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
