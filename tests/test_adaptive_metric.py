"""Claims about the adaptive metric as an option of other methods."""

from __future__ import annotations

import importlib
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import reference
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from team import create_method, list_methods, metric_distances
from team.episode import Episode, check_episode
from team.leaderboard.settings import build
from team.methods import ADAPTABLE, MetricSettings
from team.methods.adaptive import adapted

adaptable = pytest.mark.parametrize("name", sorted(ADAPTABLE))
QUICK: dict[str, dict[str, Any]] = {"tim": {"iterations": 5}, "alpha-tim": {"iterations": 5}}


def episode(seed: int = 0, dtype: torch.dtype = torch.float64, **shape: Any) -> tuple[Tensor, Tensor, Tensor]:
    support, labels, query = map(torch.from_numpy, reference.random_episode(seed, **shape))
    return support.to(dtype), labels, query.to(dtype)


@pytest.mark.parametrize("dimension", [6, 60])
def test_protonet_with_the_adaptive_metric_is_team_without_bi_sim(dimension: int) -> None:
    inputs = episode(batch=2, dimension=dimension)
    found = create_method("protonet", metric="adaptive")(*inputs)
    torch.testing.assert_close(found, create_method("team", bidirectional=False, squared=True)(*inputs))
    settings = MetricSettings(k=2, gamma=1.0, alpha=0.5)
    found = create_method("protonet", metric=settings, squared=False)(*inputs)
    torch.testing.assert_close(found, create_method("team", bidirectional=False, k=2, gamma=1.0, alpha=0.5)(*inputs))


@pytest.mark.parametrize("dimension", [4, 40])
def test_euclidean_distances_of_adapted_features_are_those_under_the_metric(dimension: int) -> None:
    support, labels, query = episode(shots=(1, 1, 1), dimension=dimension)  # a sample is its class's prototype
    found = adapted(check_episode(support, labels, query), MetricSettings())
    order = labels.argsort()
    distances = torch.cdist(found.query, found.support[:, order])[0]
    torch.testing.assert_close(distances, metric_distances(support, labels, query))


@adaptable
def test_every_adaptable_method_runs_on_one_episode_and_on_a_batch(name: str) -> None:
    method = create_method(name, metric="adaptive", learn_temperature=True, **QUICK.get(name, {}))
    assert method.transductive is True
    support, labels, query = episode(batch=3, dimension=30)
    together = method(support, labels, query)
    one_by_one = torch.stack([method(*single) for single in zip(support, labels, query, strict=True)])
    torch.testing.assert_close(together, one_by_one, rtol=1e-6, atol=1e-8)
    assert not torch.allclose(together, create_method(name, **QUICK.get(name, {}))(support, labels, query))
    together[..., 0].sum().backward()
    assert method.log_temperature.grad is not None


@adaptable
def test_odd_episodes_give_finite_answers_and_gradients(name: str) -> None:
    method = create_method(name, metric="adaptive", **QUICK.get(name, {}))
    same = episode(dtype=torch.float32, dimension=30)
    for support, labels, query in (
        episode(dtype=torch.float32, queries=1),
        (torch.ones_like(same[0]), same[1], torch.ones_like(same[2])),
        (same[0], same[1], same[0].clone()),
        episode(dtype=torch.float16, shots=(1, 20), dimension=30),
    ):
        support, query = support.requires_grad_(), query.requires_grad_()
        answer = method(support, labels, query)
        assert answer.dtype == torch.float32
        assert bool(torch.isfinite(answer).all())
        answer[:, 0].sum().backward()
        assert bool(torch.isfinite(support.grad).all())  # type: ignore[arg-type]
        assert bool(torch.isfinite(query.grad).all())  # type: ignore[arg-type]


@pytest.mark.parametrize("dimension", [6, 60])
def test_gradients_are_those_of_finite_differences(dimension: int) -> None:
    method = create_method("matchingnet", metric="adaptive")
    support, labels, query = episode(1, dimension=dimension)
    direction = torch.randn(query.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    query.requires_grad_()
    method(support, labels, query)[:, 0].sum().backward()
    with torch.no_grad():
        plus, minus = (method(support, labels, query + s * direction)[:, 0].sum() for s in (1e-6, -1e-6))
    assert query.grad is not None
    torch.testing.assert_close((query.grad * direction).sum(), (plus - minus) / 2e-6, rtol=1e-4, atol=1e-6)


def test_it_never_waits_for_the_device() -> None:
    with FakeTensorMode():
        method = create_method("protonet", metric="adaptive")
        support = torch.randn(2, 5, 60, requires_grad=True)
        labels = torch.zeros(2, 5, dtype=torch.int64)
        result = method.log_probabilities(Episode(support, labels, torch.randn(2, 9, 60), ways=5))
        result.sum().backward()
    assert result.shape == (2, 9, 5)


def test_the_euclidean_metric_is_the_method_itself() -> None:
    inputs = episode()
    torch.testing.assert_close(
        create_method("protonet", metric="euclidean")(*inputs), create_method("protonet")(*inputs)
    )


@pytest.mark.parametrize("name", sorted(set(list_methods()) - ADAPTABLE - {"team"}))
def test_methods_without_distances_have_no_metric(name: str) -> None:
    with pytest.raises(TypeError, match="has no option metric"):
        create_method(name, metric="adaptive")


def test_wrong_metrics_are_turned_away() -> None:
    with pytest.raises(ValueError, match="metric must be 'euclidean', 'adaptive' or MetricSettings, not 'cosine'"):
        create_method("protonet", metric="cosine")
    with pytest.raises(ValueError, match="base_mean belongs to the given features"):
        create_method("simpleshot", metric="adaptive", base_mean=torch.zeros(6))


@adaptable
def test_the_benchmark_offers_both_metrics_the_same_settings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    candidates = importlib.import_module("adaptive_metric").candidates(name)
    assert 1 <= len(candidates) == len({repr(setting) for setting in candidates}) <= 24
    for setting, metric in product(candidates, ("euclidean", "adaptive")):
        assert build(name, setting | {"metric": metric}, torch.zeros(4)).transductive or metric == "euclidean"


def test_what_the_benchmark_calls_indifferent_to_temperature_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    inputs = episode(batch=3, queries=30)
    for name in importlib.import_module("adaptive_metric").INDIFFERENT:
        sharp, flat = (create_method(name, temperature=value)(*inputs) for value in (0.3, 3.0))
        assert torch.equal(sharp.argmax(-1), flat.argmax(-1))
        assert not torch.allclose(sharp, flat)
