"""Claims about the methods: their papers' formulas, in one door, for one episode or a batch, on any float."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from team import create_method, list_methods, metric_distances
from team.episode import Episode, check_episode

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("protonet", {}),
    ("protonet", {"squared": False, "temperature": 3.0}),
    ("team", {}),
    ("team", {"metric": False}),
    ("team", {"bidirectional": False, "squared": True}),
    ("team", {"metric": False, "bidirectional": False}),
]
every_variant = pytest.mark.parametrize(("name", "options"), VARIANTS)

FITTED = {"alpha-tim", "baseline", "baseline++", "maml", "maml+", "reptile", "transductive-finetuning"}
LEARNED = {"gnn", "relationnet", "tpn"}
CAPTURED = [
    *VARIANTS,
    ("bd-cspn", {}),
    ("label-propagation", {}),
    ("laplacianshot", {}),
    ("masked-soft-kmeans", {}),
    ("matchingnet", {}),
    ("pt-map", {"sinkhorn_rounds": 10}),
    ("simpleshot", {}),
    ("soft-kmeans", {"rounds": 2}),
    ("soft-kmeans-cluster", {}),
    ("team+", {}),
    ("team+", {"balance": "uniform", "power": 0.7}),
    ("team+", {"balance": "free", "smoothing": 0.0}),
    ("tim", {"form": "alternating", "iterations": 10}),
]
"""For CUDA graphs: every method that neither fits by gradient nor has learned weights; checked below."""


def episode(seed: int = 0, dtype: torch.dtype = torch.float64, **shape: Any) -> tuple[Tensor, Tensor, Tensor]:
    support, labels, query = map(torch.from_numpy, reference.random_episode(seed, **shape))
    return support.to(dtype), labels, query.to(dtype)


def log_softmax(scores: np.ndarray) -> np.ndarray:
    return scores - np.log(np.exp(scores).sum(1, keepdims=True))


# --- the papers' formulas ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_protonet_is_a_softmax_over_squared_distances_to_class_means(temperature: float) -> None:
    support, labels, query = episode()
    centres = reference.prototypes(support.numpy(), labels.numpy())
    squared = reference.distances(np.eye(6), query.numpy(), centres) ** 2
    found = create_method("protonet", temperature=temperature)(support, labels, query)
    np.testing.assert_allclose(found.numpy(), log_softmax(-squared / temperature), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dimension", [6, 40])
def test_team_is_the_papers_formula_and_nothing_else(dimension: int) -> None:
    support, labels, query = episode(dimension=dimension)
    distances = reference.solve(support.numpy(), labels.numpy(), query.numpy(), k=5).distances
    similarity = reference.bidirectional_similarity(distances)
    expected = similarity / similarity.sum(1, keepdims=True)
    np.testing.assert_allclose(create_method("team", k=5)(support, labels, query).exp().numpy(), expected, rtol=1e-7)


def test_team_without_its_parts_is_protonet() -> None:
    off = create_method("team", mixing=False, metric=False, bidirectional=False, squared=True)
    for dtype in (torch.float32, torch.float64):
        inputs = episode(dtype=dtype)
        torch.testing.assert_close(off(*inputs), create_method("protonet")(*inputs))


def test_without_bi_sim_team_is_equation_12_alone() -> None:
    inputs = episode()
    expected = (-metric_distances(*inputs, k=4)).log_softmax(-1)
    torch.testing.assert_close(create_method("team", k=4, bidirectional=False)(*inputs), expected)


# --- what every method keeps ------------------------------------------------------------------------------------------


@every_variant
def test_log_probabilities_sum_to_one(name: str, options: dict[str, Any]) -> None:
    result = create_method(name, **options)(*episode(batch=3))
    assert result.shape == (3, 7, 3)
    torch.testing.assert_close(result.exp().sum(-1), torch.ones(3, 7, dtype=torch.float64))


@every_variant
def test_a_batch_equals_its_episodes_one_by_one(name: str, options: dict[str, Any]) -> None:
    method = create_method(name, **options)
    for dimension in (4, 40):
        support, labels, query = episode(batch=4, dimension=dimension)
        one_by_one = torch.stack([method(*single) for single in zip(support, labels, query, strict=True)])
        torch.testing.assert_close(method(support, labels, query), one_by_one, rtol=1e-8, atol=1e-10)


@every_variant
def test_the_order_of_queries_supports_and_classes_does_not_matter(name: str, options: dict[str, Any]) -> None:
    method = create_method(name, **options)
    support, labels, query = episode(shots=(2, 1, 3), queries=9)
    answer = method(support, labels, query)
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(9, generator=generator)
    torch.testing.assert_close(method(support, labels, query[order]), answer[order])
    order = torch.randperm(6, generator=generator)
    torch.testing.assert_close(method(support[order], labels[order], query), answer)
    renamed = torch.tensor([2, 0, 1])  # class c is now called renamed[c]
    torch.testing.assert_close(method(support, renamed[labels], query)[:, renamed], answer)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [1.0, 300.0])
@every_variant
def test_half_precision_features_give_the_answer_of_the_same_features_in_float32(
    name: str, options: dict[str, Any], scale: float, dtype: torch.dtype
) -> None:
    """Also where squares would overflow float16."""
    method = create_method(name, **options)
    for dimension in (4, 40):
        support, labels, query = episode(dtype=dtype, dimension=dimension, scale=scale)
        result = method(support, labels, query)
        assert result.dtype == torch.float32
        assert bool(torch.isfinite(result).all())
        torch.testing.assert_close(result, method(support.float(), labels, query.float()))


@every_variant
def test_duplicates_give_finite_gradients(name: str, options: dict[str, Any]) -> None:
    method = create_method(name, **options)
    for equal in ("query is support", "all"):
        support, labels, query = episode()
        query[0] = support[0]
        if equal == "all":
            support, query = torch.ones_like(support), torch.ones_like(query)
        support.requires_grad_()
        query.requires_grad_()
        method(support, labels, query)[:, 0].sum().backward()
        assert bool(torch.isfinite(support.grad).all())  # type: ignore[arg-type]
        assert bool(torch.isfinite(query.grad).all())  # type: ignore[arg-type]


@every_variant
def test_the_transductive_flag_tells_whether_queries_see_one_another(name: str, options: dict[str, Any]) -> None:
    method = create_method(name, **options)
    support, labels, query = episode()
    together, alone = method(support, labels, query)[:1], method(support, labels, query[:1])
    assert method.transductive is not torch.allclose(together, alone)


@pytest.mark.parametrize("name", ["protonet", "team"])
def test_a_learned_temperature_receives_a_gradient_and_a_fixed_one_does_not(name: str) -> None:
    learned = create_method(name, temperature=2.0, learn_temperature=True)
    assert float(learned.temperature.detach()) == pytest.approx(2.0)
    learned(*episode())[:, 0].sum().backward()
    assert learned.log_temperature.grad is not None
    assert float(learned.log_temperature.grad.abs()) > 0
    fixed = create_method(name, temperature=2.0)
    assert not any(parameter.requires_grad for parameter in fixed.parameters())
    assert "log_temperature" in fixed.state_dict(), "checkpoints keep it"


def test_only_team_mixes_in_training_and_can_be_told_not_to() -> None:
    assert create_method("team").mixing
    assert not create_method("team", mixing=False).mixing
    assert not create_method("protonet").mixing


def test_k_is_lowered_to_the_number_of_queries_in_methods_but_not_in_the_metric() -> None:
    inputs = episode(queries=3)
    torch.testing.assert_close(create_method("team", k=50)(*inputs), create_method("team", k=3)(*inputs))
    with pytest.raises(ValueError, match="k is 50, but an episode has only 3 queries"):
        metric_distances(*inputs, k=50)


# --- the door ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("proto", {}, ValueError, "no method is called 'proto'; there are .*protonet.*team"),
        ("protonet", {"k": 5}, TypeError, "protonet has no option k; it has squared, temperature, learn_temperature"),
        ("team", {"neighbours": 5, "beta": 1}, TypeError, "team has no option beta, neighbours; it has .*gamma"),
        ("team", {"k": -1}, ValueError, "k must be a whole number of neighbours"),
        ("team", {"gamma": -1.0}, ValueError, "gamma must be finite and not negative"),
        ("team", {"temperature": 0.0}, ValueError, "temperature must be positive and finite, not 0.0"),
        ("protonet", {"temperature": float("inf")}, ValueError, "temperature must be positive and finite"),
        ("protonet", {"temperature": float("nan")}, ValueError, "temperature must be positive and finite"),
    ],
)
def test_wrong_names_and_options_are_turned_away(
    name: str, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        create_method(name, **options)


@pytest.mark.parametrize("name", list_methods())
@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"support": np.zeros((6, 6))}, TypeError, "support must be a torch.Tensor"),
        ({"labels": torch.tensor([0, 0, 2, 2, 2, 2])}, ValueError, "class 1 has no support sample"),
        ({"labels": torch.zeros(6)}, TypeError, "labels must be integers"),
        ({"query": torch.full((7, 6), torch.nan, dtype=torch.float64)}, ValueError, "query holds NaN"),
        ({"query": torch.zeros(7, 5, dtype=torch.float64)}, ValueError, "6 features per sample, query 5"),
    ],
)
def test_every_method_turns_wrong_episodes_away(
    name: str, change: dict[str, Any], error: type[Exception], words: str
) -> None:
    support, labels, query = episode()
    with pytest.raises(error, match=words):
        create_method(name)(**{"support": support, "labels": labels, "query": query, **change})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prior": torch.eye(5)}, "prior must be"),
        ({"prior": -torch.eye(6)}, "prior is not positive definite"),
        ({"seen": torch.ones(3, 5)}, "seen prototypes must be"),
    ],
)
def test_team_turns_away_a_prior_and_seen_prototypes_that_do_not_fit(options: dict[str, Tensor], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        create_method("team", **options)(*episode())


# --- devices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [4, 60])
@every_variant
def test_log_probabilities_never_wait_for_the_device(name: str, options: dict[str, Any], dimension: int) -> None:
    """Fake tensors hold no values, so any decision on one raises."""
    with FakeTensorMode():
        method = create_method(name, learn_temperature=True, **options)
        support = torch.randn(2, 5, dimension, requires_grad=True)
        labels = torch.zeros(2, 5, dtype=torch.int64)
        result = method.log_probabilities(Episode(support, labels, torch.randn(2, 9, dimension), ways=5))
        result.sum().backward()
    assert result.shape == (2, 9, 5)


def test_no_method_is_forgotten_among_those_to_capture() -> None:
    assert {name for name, _ in CAPTURED} == set(list_methods()) - FITTED - LEARNED


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device to capture a graph on")
@pytest.mark.parametrize("batch", [1, 12])
@pytest.mark.parametrize(("dimension", "queries"), [(16, 75), (256, 75), (640, 75), (256, 300), (640, 700)])
@pytest.mark.parametrize(("name", "options"), CAPTURED)
def test_log_probabilities_can_be_captured_in_a_cuda_graph(
    name: str, options: dict[str, Any], dimension: int, queries: int, batch: int
) -> None:
    """By both routes: torch has other libraries, some of which wait, for a batch and for large matrices."""
    shape = {"dimension": dimension, "queries": queries, "batch": batch, "shots": (1,) * 5}
    first, second = (check_episode(*(t.cuda() for t in episode(seed, torch.float32, **shape))) for seed in (0, 1))
    method = create_method(name, **options).cuda()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        for _ in range(3):
            method.log_probabilities(first)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        captured = method.log_probabilities(first)
    expected = method.log_probabilities(second).detach()
    first.support.copy_(second.support)
    first.query.copy_(second.query)
    graph.replay()
    iterated = {} if (name, options) in VARIANTS else {"rtol": 1e-4, "atol": 1e-3}  # in float32: not to the last digit
    torch.testing.assert_close(captured, expected, **iterated)
