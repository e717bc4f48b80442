"""Timings, not claims: `pytest benchmarks` runs them with pytest-benchmark; they are not collected by default."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from torch import Tensor

from team.bench import naive_distances
from team.closed_form import MetricSettings, moment_distances, span_distances
from team.episode import Episode
from team.similarity import log_similarity

Route = Callable[[Episode, MetricSettings], tuple[Tensor, Tensor]]
BATCH, WAYS, QUERIES = 16, 5, 75
SETTINGS = MetricSettings(k=5)

shots_of_an_episode = pytest.mark.parametrize("shots", [1, 5])
routes = pytest.mark.parametrize(
    ("route", "dimension"),
    [
        *((span_distances, dimension) for dimension in (256, 512, 640, 2048)),
        *((moment_distances, dimension) for dimension in (32, 64, 256, 640)),
    ],
)


def random_episode(shots: int, dimension: int, batch: int = BATCH, queries: int = QUERIES) -> Episode:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(WAYS).repeat(shots).expand(batch, -1)
    support = torch.randn(batch, WAYS * shots, dimension, generator=generator) / dimension**0.5
    query = torch.randn(batch, queries, dimension, generator=generator) / dimension**0.5
    return Episode(support, labels, query, WAYS)


@routes
@shots_of_an_episode
def test_forward(benchmark: BenchmarkFixture, route: Route, dimension: int, shots: int) -> None:
    episode = random_episode(shots, dimension)
    benchmark.group = f"forward, {BATCH} episodes, {shots}-shot"
    with torch.no_grad():
        benchmark(route, episode, SETTINGS)


@routes
@shots_of_an_episode
def test_forward_and_backward(benchmark: BenchmarkFixture, route: Route, dimension: int, shots: int) -> None:
    episode = random_episode(shots, dimension)
    leaves = (episode.support.requires_grad_(), episode.query.requires_grad_())
    benchmark.group = f"forward and backward, {BATCH} episodes, {shots}-shot"
    benchmark(lambda: torch.autograd.grad(route(episode, SETTINGS)[0].sum(), leaves))


@pytest.mark.parametrize("dimension", [256, 640])
def test_the_naive_formula_for_one_episode(benchmark: BenchmarkFixture, dimension: int) -> None:
    episode = random_episode(1, dimension, batch=1)
    benchmark.group = "the paper's formula, one episode"
    with torch.no_grad():
        benchmark(naive_distances, episode.support[0], episode.labels[0], episode.query[0], SETTINGS)


@pytest.mark.parametrize("queries", [75, 10_000, 100_000])
def test_bidirectional_similarity(benchmark: BenchmarkFixture, queries: int) -> None:
    scores = -torch.rand(1, queries, WAYS, generator=torch.Generator().manual_seed(0))
    benchmark.group = "Bi-SIM"
    benchmark(log_similarity, scores)


def test_100_000_queries_of_512_features(benchmark: BenchmarkFixture) -> None:
    episode = random_episode(1, 512, batch=1, queries=100_000)
    benchmark.group = "100 000 queries"
    with torch.no_grad():
        benchmark.pedantic(moment_distances, args=(episode, SETTINGS), rounds=2, warmup_rounds=0)
