"""Claims about the adaptive metric (Sec. 3.3): it is the paper's formula, by both routes, and safe at any scale."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from team import adaptive_metric, metric_distances, solve_metric
from team.closed_form import MetricSettings, episode_distances, moment_distances, moments, span_distances
from team.episode import Episode, check_episode

TIGHT = {"shots": (1, 1, 1, 1), "queries": 12, "spread": 0.05}  # far classes: at a large scale λ must be lowered
SPAN, MOMENT = 60, 4  # dimensions at which the small episodes below take the one route and the other


def tensors(*arrays: np.ndarray, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    return tuple(t.to(dtype) if t.is_floating_point() else t for t in map(torch.from_numpy, arrays))


def as_float64(value: Tensor | None) -> np.ndarray | None:
    return None if value is None else value.double().numpy()


def relative_error(found: Tensor, expected: np.ndarray) -> float:
    return float(np.abs(found.double().numpy() - expected).max() / np.abs(expected).max())


def largest_relative_error(found: Tensor, expected: np.ndarray) -> float:
    return float(np.abs(found.double().numpy() / expected - 1).max())


def seen_prototypes(dimension: int, batch: int | None = None, dtype: torch.dtype = torch.float64) -> Tensor:
    leading = () if batch is None else (batch,)
    return torch.randn(*leading, 4, dimension, dtype=dtype, generator=torch.Generator().manual_seed(9))


# --- equal to the paper -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
@pytest.mark.parametrize("dimension", [3, 12, 70])
@pytest.mark.parametrize("with_seen", [False, True])
@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("k", [0, 1, 3, 10])
def test_metric_and_distances_equal_the_reference(
    dtype: torch.dtype, tolerance: float, dimension: int, with_seen: bool, with_prior: bool, k: int
) -> None:
    arrays = reference.random_episode(k, shots=(1, 4, 2), queries=10, dimension=dimension)
    support, labels, query = tensors(*arrays, dtype=dtype)
    options: dict[str, Any] = {
        "seen": seen_prototypes(dimension, dtype=dtype) if with_seen else None,
        "prior": tensors(reference.random_prior(1, dimension), dtype=dtype)[0] if with_prior else None,
    }
    exact = {name: as_float64(value) for name, value in options.items()}
    expected = reference.solve(support.double().numpy(), labels.numpy(), query.double().numpy(), k=k, **exact)
    distances = metric_distances(support, labels, query, k=k, **options)
    metric = adaptive_metric(support, labels, query, k=k, **options)
    assert distances.shape == (10, 3)
    assert metric.shape == (dimension, dimension)
    assert distances.dtype == metric.dtype == dtype
    assert largest_relative_error(distances, expected.distances) < tolerance
    assert relative_error(metric, expected.metric) < tolerance


@pytest.mark.parametrize("dimension", [MOMENT, SPAN])
def test_a_batch_with_a_prior_and_seen_prototypes_per_episode_equals_the_reference(dimension: int) -> None:
    support, labels, query = arrays = reference.random_episode(3, shots=(2, 1, 3), dimension=dimension, batch=3)
    prior, seen = reference.random_prior(2, dimension, batch=3), seen_prototypes(dimension, batch=3)
    options: dict[str, Any] = {"k": 4, "gamma": 0.5, "lam": 0.02, "alpha": 0.3}
    given_prior = tensors(prior)[0]
    distances = metric_distances(*tensors(*arrays), prior=given_prior, seen=seen, **options)
    metric = adaptive_metric(*tensors(*arrays), prior=given_prior, seen=seen, **options)
    for i in range(3):
        expected = reference.solve(support[i], labels[i], query[i], prior=prior[i], seen=seen[i].numpy(), **options)
        assert largest_relative_error(distances[i], expected.distances) < 1e-9
        assert relative_error(metric[i], expected.metric) < 1e-9


@pytest.mark.parametrize(("gamma", "lam", "alpha"), [(0.0, 0.01, 2.0), (0.2, 0.0, 2.0), (0.2, 0.01, 0.0), (0, 0, 0)])
@pytest.mark.parametrize("dimension", [MOMENT, SPAN])
def test_each_part_of_the_formula_can_be_set_to_zero(gamma: float, lam: float, alpha: float, dimension: int) -> None:
    arrays = reference.random_episode(4, dimension=dimension)
    options: dict[str, Any] = {"k": 3, "gamma": gamma, "lam": lam, "alpha": alpha}
    expected = reference.solve(*arrays, **options)
    assert largest_relative_error(metric_distances(*tensors(*arrays), **options), expected.distances) < 1e-9


@pytest.mark.parametrize("dimension", [MOMENT, SPAN])
def test_distances_do_not_depend_on_where_the_features_lie(dimension: int) -> None:
    """A common offset a thousand times the spread, in float32."""
    arrays = reference.random_episode(5, dimension=dimension)
    support, labels, query = tensors(*arrays, dtype=torch.float32)
    support, query = support + 1000, query + 1000
    expected = reference.solve(support.double().numpy(), labels.numpy(), query.double().numpy())
    assert largest_relative_error(metric_distances(support, labels, query), expected.distances) < 1e-6


@pytest.mark.parametrize("dimension", [5, 20, 90])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_both_routes_agree_in_both_regimes(dimension: int, dtype: torch.dtype) -> None:
    arrays = reference.random_episode(6, shots=(3, 1, 2, 2), queries=12, dimension=dimension, batch=2)
    episode = check_episode(*tensors(*arrays, dtype=dtype))
    prior = tensors(reference.random_prior(3, dimension))[0]
    for options in ({}, {"seen": seen_prototypes(dimension)}, {"prior": prior}, {"k": 0}):
        chosen = MetricSettings(**{"k": 6, **options})  # type: ignore[arg-type]
        span, span_lam = span_distances(episode, chosen)
        moment, moment_lam = moment_distances(episode, chosen)
        torch.testing.assert_close(span, moment, rtol=1e-9, atol=0)
        torch.testing.assert_close(span_lam, moment_lam, rtol=1e-9, atol=0)
        root, _ = episode_distances(episode, chosen)
        torch.testing.assert_close(root, span.sqrt().to(root.dtype), rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("dimension", [5, 20, 90])
@pytest.mark.parametrize("k", [0, 3, 9])
def test_an_unlabelled_set_joins_the_queries_in_the_metric_by_both_routes(
    dtype: torch.dtype, dimension: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Covariance and neighbours are those of queries and unlabelled samples together; only queries get distances."""
    monkeypatch.setattr(moments, "_CHUNK_BYTES", 2000)  # a few points: chunks end among queries and unlabelled ones
    arrays = reference.random_episode(8, shots=(2, 1, 3), queries=10, dimension=dimension, batch=2)
    support, labels, samples = tensors(*arrays, dtype=dtype)
    query, unlabelled = samples[:, :4], samples[:, 4:]
    prior = reference.random_prior(4, dimension)
    for options in ({}, {"seen": seen_prototypes(dimension)}, {"prior": tensors(prior)[0]}):
        chosen = MetricSettings(k=k, **options)  # type: ignore[arg-type]
        episode = check_episode(support, labels, query, unlabelled)
        exact = {name: as_float64(value) for name, value in options.items()}
        for route in (span_distances, moment_distances):
            squared, _ = route(episode, chosen)
            assert squared.shape == (2, 4, 3)
            for i in range(2):
                everything = (support[i].double().numpy(), labels[i].numpy(), samples[i].double().numpy())
                expected = reference.solve(*everything, k=k, **exact).distances[:4]
                assert largest_relative_error(squared[i].sqrt(), expected) < 1e-8


@pytest.mark.parametrize("k", [0, 1, 5, 11])
def test_moments_taken_in_chunks_equal_moments_taken_at_once(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    episode = check_episode(*tensors(*reference.random_episode(7, queries=11, dimension=5, batch=2)))
    chosen = MetricSettings(k=k, seen=seen_prototypes(5))
    whole, _ = moment_distances(episode, chosen)
    for size in (1, 4 * 8 * 2 * 6):  # one query at a time; four of them, and three at the end
        monkeypatch.setattr(moments, "_CHUNK_BYTES", size)
        torch.testing.assert_close(moment_distances(episode, chosen)[0], whole, rtol=1e-10, atol=0)


def test_the_closed_form_reaches_the_optimum_an_sdp_solver_finds() -> None:
    """Eq. 8 as it stands, from Eq. 5 and Eq. 7, with α = 0 and a prior."""
    cvxpy = pytest.importorskip("cvxpy")
    for seed, dimension in enumerate((4, 5, 6)):
        support, labels, query = arrays = reference.random_episode(seed, dimension=dimension)
        prior = reference.random_prior(seed, dimension)
        k, gamma, lam = 3, 0.2, 0.05
        must = reference.mean_scatter(reference.must_link_pairs(support, labels, query, k), dimension)
        centres = reference.prototypes(support, labels)
        cannot = reference.mean_scatter(reference.cannot_link_pairs(centres, None), dimension)
        metric = cvxpy.Variable((dimension, dimension), PSD=True)
        constrained = cvxpy.trace(metric @ must) - lam * cvxpy.trace(metric @ cannot)
        regular = cvxpy.trace(np.linalg.inv(prior) @ metric) - cvxpy.log_det(metric)
        problem = cvxpy.Problem(cvxpy.Minimize(regular + gamma * constrained))
        problem.solve(solver=cvxpy.CLARABEL)
        ours = adaptive_metric(*tensors(*arrays), k=k, gamma=gamma, lam=lam, alpha=0, prior=tensors(prior)[0]).numpy()
        reached = reference.objective(ours, np.linalg.inv(prior) + gamma * must - gamma * lam * cannot)
        assert abs(reached - problem.value) < 1e-6
        np.testing.assert_allclose(ours, metric.value, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
@pytest.mark.parametrize("batch", [None, 2])
def test_distances_are_euclidean_after_the_projection(dtype: torch.dtype, scale: float, batch: int | None) -> None:
    """M† = LᵀL, also where M† in float32 has lost its small eigenvalues."""
    arrays = reference.random_episode(8, dimension=96, scale=scale, batch=batch)
    support, labels, query = tensors(*arrays, dtype=dtype)
    solution = solve_metric(support, labels, query)
    torch.testing.assert_close(
        solution.projection.mT @ solution.projection, solution.matrix, rtol=1e-4, atol=1e-4 * scale**2
    )
    prototypes = check_episode(support, labels, query).prototypes().reshape(*support.shape[:-2], 3, 96)
    project = solution.projection.mT
    found = torch.cdist(query @ project, prototypes @ project, compute_mode="donot_use_mm_for_euclid_dist")
    torch.testing.assert_close(found, metric_distances(support, labels, query), rtol=1e-4, atol=0)


# --- gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [2, 7])
@pytest.mark.parametrize("lowered", [False, True])
def test_gradients_are_right_in_both_routes_and_where_lam_is_lowered(dimension: int, lowered: bool) -> None:
    size = {"spread": 0.05, "scale": 10.0} if lowered else {"spread": 1.0}
    support, labels, query = tensors(*reference.random_episode(1, shots=(2, 1), queries=2, dimension=dimension, **size))
    factor = torch.randn(dimension, dimension, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) / 2
    lam = 0.5 if lowered else 0.01

    def distances(support: Tensor, query: Tensor, seen: Tensor, factor: Tensor) -> Tensor:
        prior = factor @ factor.mT + torch.eye(dimension, dtype=torch.float64)
        return metric_distances(support, labels, query, k=1, lam=lam, prior=prior, seen=seen)

    inputs = (support, query, seen_prototypes(dimension)[:1], factor)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        distances(*inputs)
    assert bool(caught) == lowered
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.autograd.gradcheck(distances, tuple(x.clone().requires_grad_() for x in inputs))


@pytest.mark.parametrize("dimension", [MOMENT, SPAN])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("which", ["query is support", "queries are equal", "all are equal", "all are zero"])
def test_duplicates_give_finite_distances_and_finite_gradients(
    dimension: int, dtype: torch.dtype, alpha: float, which: str
) -> None:
    support, labels, query = tensors(*reference.random_episode(2, dimension=dimension), dtype=dtype)
    if which == "query is support":
        query[:3] = support[0]  # the only sample of its class, so its prototype too
    elif which == "queries are equal":
        query[:] = query[0].clone()
    else:
        support[:] = support[0].clone() * (which == "all are equal")
        query[:] = support[0]
    support.requires_grad_()
    query.requires_grad_()
    distances = metric_distances(support, labels, query, alpha=alpha)
    assert bool((torch.isfinite(distances) & (distances >= 0)).all())
    distances.sum().backward()
    assert bool(torch.isfinite(support.grad).all())  # type: ignore[arg-type]
    assert bool(torch.isfinite(query.grad).all())  # type: ignore[arg-type]
    if which == "query is support":
        assert float(distances[:3, 0].max()) < 1e-3 * float(distances[:3, 1:].min())


# --- feasibility ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("with_seen", [False, True])
@pytest.mark.parametrize("dimension", [MOMENT, SPAN])
def test_no_scale_of_features_gives_a_wrong_distance(
    scale: float, dtype: torch.dtype, alpha: float, with_seen: bool, dimension: int
) -> None:
    """λ is lowered just where Y would not be positive definite, to the reference's value, and the caller is told."""
    arrays = reference.random_episode(11, dimension=dimension, scale=scale, **TIGHT)  # type: ignore[arg-type]
    support, labels, query = tensors(*arrays, dtype=dtype)
    seen = scale * seen_prototypes(dimension, dtype=dtype) if with_seen else None
    exact = (support.double().numpy(), labels.numpy(), query.double().numpy())
    expected = reference.solve(*exact, k=3, alpha=alpha, seen=as_float64(seen))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = solve_metric(support, labels, query, k=3, alpha=alpha, seen=seen)
        distances = metric_distances(support, labels, query, k=3, alpha=alpha, seen=seen)
    lowered = expected.lam < 0.01
    assert lowered or scale < 100
    assert not lowered or scale > 1
    assert bool(solution.lowered) == lowered
    assert len(caught) == (2 if lowered else 0)
    assert all("makes Eq. 8 unbounded for 1 of 1 episodes" in str(warning.message) for warning in caught)
    assert float(solution.lam) == pytest.approx(expected.lam, rel=0.01)
    assert float(solution.lam) <= expected.lam * (1 + 1e-9)
    assert bool(torch.isfinite(distances).all())
    assert float(distances.min()) > 0
    same_lam = reference.solve(*exact, k=3, alpha=alpha, lam=float(solution.lam), seen=as_float64(seen))
    assert largest_relative_error(distances, same_lam.distances) < 1e-4


@pytest.mark.parametrize("route", [span_distances, moment_distances])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_distances_stay_positive_at_scales_that_make_no_sense(route: Any, alpha: float) -> None:
    """At a million times a tame scale the subtractions lose all but a few digits."""
    for scale in (1e4, 1e5, 1e6):
        for dimension in (3, 40):
            arrays = reference.random_episode(13, shots=(1, 2, 3), queries=9, dimension=dimension, scale=scale)
            squared, lam = route(check_episode(*tensors(*arrays)), MetricSettings(k=5, alpha=alpha))
            assert bool((torch.isfinite(squared) & (squared > 0)).all())
            assert 0 < float(lam) <= 0.01


@pytest.mark.parametrize("route", [span_distances, moment_distances])
def test_the_bound_behind_lam_is_tight_even_for_many_equal_eigenvalues(route: Any) -> None:
    """Thirty classes in mutually orthogonal directions, each query on its class: 29 equal eigenvalues."""
    corners = 100 * np.eye(30)
    expected = reference.solve(corners, np.arange(30), corners, k=1)
    assert expected.lam < 0.01
    episode = check_episode(*tensors(corners, np.arange(30), corners))
    _, lam = route(episode, MetricSettings(k=1))
    assert 0.998 * expected.lam < float(lam) <= expected.lam * (1 + 1e-9)


def test_only_the_episodes_of_a_batch_that_need_it_get_a_lower_lam() -> None:
    support, labels, query = tensors(*reference.random_episode(12, dimension=8, batch=3, **TIGHT))  # type: ignore[arg-type]
    support[1], query[1] = 100 * support[1], 100 * query[1]
    with pytest.warns(UserWarning, match="unbounded for 1 of 3 episodes"):
        solution = solve_metric(support, labels, query)
    assert solution.lowered.tolist() == [False, True, False]
    assert solution.lam[[0, 2]].tolist() == [0.01, 0.01]


@pytest.mark.parametrize("function", [adaptive_metric, metric_distances, solve_metric])
def test_the_warning_points_at_the_line_that_called(function: Callable[..., Any]) -> None:
    arrays = reference.random_episode(11, dimension=5, scale=100, **TIGHT)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="lowered") as caught:
        function(*tensors(*arrays), k=3)
    assert [warning.filename for warning in caught] == [__file__]


def test_y_of_the_paper_is_not_positive_definite_there() -> None:
    """The paper says Y ≻ 0 always holds for a positive definite prior; the lowered episodes are counterexamples."""
    support, labels, query = reference.random_episode(11, dimension=5, scale=100, **TIGHT)  # type: ignore[arg-type]
    lowered = reference.solve(support, labels, query, k=3)
    cannot = reference.mean_scatter(reference.cannot_link_pairs(reference.prototypes(support, labels), None), 5)
    as_printed = lowered.inverse - 0.2 * (0.01 - lowered.lam) * cannot
    assert np.linalg.eigvalsh(as_printed).min() < 0 < np.linalg.eigvalsh(lowered.inverse).min()


# --- properties over shapes -------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    shots=st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple),
    queries=st.integers(1, 20),
    dimension=st.integers(1, 40),
    dtype=st.sampled_from([torch.bfloat16, torch.float16, torch.float32, torch.float64]),
    neighbours=st.integers(0, 20),
    seen=st.booleans(),
    scale=st.sampled_from([0.01, 1.0, 100.0]),
    seed=st.integers(0, 1000),
)
def test_any_episode_has_a_symmetric_positive_definite_metric_and_both_routes_agree(
    shots: tuple[int, ...],
    queries: int,
    dimension: int,
    dtype: torch.dtype,
    neighbours: int,
    seen: bool,
    scale: float,
    seed: int,
) -> None:
    arrays = reference.random_episode(seed, shots=shots, queries=queries, dimension=dimension, scale=scale)
    support, labels, query = tensors(*arrays, dtype=dtype)
    options: dict[str, Any] = {"k": min(neighbours, queries), "seen": seen_prototypes(dimension) if seen else None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solve_metric(support, labels, query, **options)
        distances = metric_distances(support, labels, query, **options)
    largest = float(solution.matrix.abs().max())
    torch.testing.assert_close(solution.matrix, solution.matrix.mT, rtol=0, atol=1e-6 * largest)
    assert float(solution.projection.diagonal().min()) > 0
    if dtype == torch.float64:
        assert float(torch.linalg.eigvalsh(solution.matrix).min()) > 0
    assert distances.shape == (queries, len(shots))
    assert bool((torch.isfinite(distances) & (distances >= 0)).all())
    assert 0 < float(solution.lam) <= 0.01
    episode = check_episode(support, labels, query)
    span, _ = span_distances(episode, MetricSettings(**options))
    moment, _ = moment_distances(episode, MetricSettings(**options))
    torch.testing.assert_close(span, moment, rtol=1e-6, atol=1e-9 * float(moment.max()))


# --- size and device --------------------------------------------------------------------------------------------------

MEMORY_SCRIPT = """
import resource, sys, torch
from team import metric_distances
torch.set_num_threads(2)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
metric_distances(torch.rand(2, 4), torch.arange(2), torch.rand(9, 4))
before = peak()
generator = torch.Generator().manual_seed(0)
support, query = torch.rand(5, 512, generator=generator), torch.rand(100_000, 512, generator=generator)
with torch.no_grad():
    distances = metric_distances(support, torch.arange(5), query)
assert distances.shape == (100_000, 5) and bool(torch.isfinite(distances).all()) and float(distances.min()) > 0
print(peak() - before)
"""


def test_100_000_queries_of_512_features_need_less_than_2_gb() -> None:
    pytest.importorskip("resource", reason="the peak memory of a process is read through the resource module")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", MEMORY_SCRIPT]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 2e9


@pytest.mark.parametrize("dimension", [MOMENT, SPAN])
def test_the_trusted_path_never_waits_for_the_device(dimension: int) -> None:
    """Fake tensors hold no values: any decision on a value raises, here and in the checked door, but not inside."""
    with FakeTensorMode():
        support, query = torch.randn(2, 5, dimension, requires_grad=True), torch.randn(2, 9, dimension)
        labels = torch.zeros(2, 5, dtype=torch.int64)
        chosen = MetricSettings(k=3, seen=torch.randn(4, dimension), prior=torch.eye(dimension))
        episode = Episode(support, labels, query, ways=5, unlabelled=torch.randn(2, 4, dimension))
        distances, lam = episode_distances(episode, chosen)
        distances.sum().backward()
        assert distances.shape == (2, 9, 5)
        assert lam.shape == (2,)
        with pytest.raises(DataDependentOutputException):
            metric_distances(support, labels, query)


# --- wrong input ------------------------------------------------------------------------------------------------------

ASYMMETRIC = torch.eye(6, dtype=torch.float64) + torch.triu(torch.ones(6, 6, dtype=torch.float64), 1) / 10
BAD_SETTINGS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"k": 8}, ValueError, "k is 8, but an episode has only 7 queries"),
    ({"k": -1}, ValueError, "k must be a whole number of neighbours, 0 or more, not -1"),
    ({"k": 2.0}, ValueError, "k must be a whole number.*not 2.0"),
    ({"k": True}, ValueError, "k must be a whole number.*not True"),
    ({"gamma": -0.1}, ValueError, "gamma must be finite and not negative, not -0.1"),
    ({"gamma": float("nan")}, ValueError, "gamma must be finite and not negative, not nan"),
    ({"lam": -1}, ValueError, "lam must be finite and not negative"),
    ({"lam": float("inf")}, ValueError, "lam must be finite and not negative, not inf"),
    ({"alpha": -2.0}, ValueError, "alpha must be finite and not negative"),
    ({"prior": np.eye(6)}, TypeError, "prior must be a torch.Tensor, not ndarray"),
    ({"prior": torch.eye(6, dtype=torch.int64)}, TypeError, "prior must hold floating point"),
    ({"prior": torch.eye(5)}, ValueError, r"prior must be \[6, 6\] or one such per episode, not \[5, 5\]"),
    ({"prior": torch.ones(6)}, ValueError, "prior must have shape"),
    ({"prior": torch.eye(6).expand(2, 6, 6)}, ValueError, r"prior must be \[6, 6\] .* not \[2, 6, 6\]"),
    ({"prior": ASYMMETRIC}, ValueError, r"prior must be symmetric; use \(prior \+ prior.mT\) / 2"),
    ({"prior": -torch.eye(6)}, ValueError, "prior is not positive definite"),
    ({"prior": torch.ones(6, 6)}, ValueError, "prior is not positive definite"),
    ({"prior": torch.full((6, 6), torch.nan)}, ValueError, "prior holds NaN or infinite"),
    ({"seen": np.ones((3, 6))}, TypeError, "seen must be a torch.Tensor, not ndarray"),
    ({"seen": torch.ones(3, 6, dtype=torch.int64)}, TypeError, "seen must hold floating point"),
    ({"seen": torch.ones(3, 5)}, ValueError, r"seen prototypes must be \[T, 6\] or \[1, T, 6\], not \[3, 5\]"),
    ({"seen": torch.ones(2, 3, 6)}, ValueError, r"seen prototypes must be .* not \[2, 3, 6\]"),
    ({"seen": torch.ones(0, 6)}, ValueError, "seen is empty"),
    ({"seen": torch.full((3, 6), torch.inf)}, ValueError, "seen holds NaN or infinite"),
    ({"support": torch.ones(6, 5, dtype=torch.float64)}, ValueError, "support has 5 features per sample, query 6"),
    ({"labels": torch.zeros(6)}, TypeError, "labels must be integers"),
]


@pytest.mark.parametrize("function", [adaptive_metric, metric_distances, solve_metric])
@pytest.mark.parametrize(("change", "error", "words"), BAD_SETTINGS)
def test_wrong_input_is_turned_away_with_words_that_help(
    function: Callable[..., Any], change: dict[str, Any], error: type[Exception], words: str
) -> None:
    support, labels, query = tensors(*reference.random_episode(0))
    with pytest.raises(error, match=words):
        function(**{"support": support, "labels": labels, "query": query, **change})
