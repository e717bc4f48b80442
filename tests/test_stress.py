"""Every method survives what folders of images hold: one query, classes of 1 and of 50, 50 ways, copies, float16."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from team import create_method, evaluate, list_methods
from team.methods import Method

WIDTH = 24

every_method = pytest.mark.parametrize("name", list_methods())


def ready(name: str) -> Method:
    """The method with random weights where it learns some; those say how wide features are."""
    try:
        return create_method(name, dim=WIDTH)
    except TypeError:
        return create_method(name)


def features(*shape: int, seed: int = 0) -> Tensor:
    """Not negative and about as large as those of a ConvNet."""
    return 3 * torch.randn(*shape, WIDTH, generator=torch.Generator().manual_seed(seed)).relu()


def answer(name: str, support: Tensor, labels: Tensor, query: Tensor) -> Tensor:
    """Probabilities ``[Q, N]``, after they were found to be some."""
    with torch.no_grad():
        log_p = ready(name)(support, labels, query)
    assert log_p.shape == (*query.shape[:-1], int(labels.max()) + 1)
    assert log_p.dtype in (torch.float32, torch.float64)
    assert not log_p.isnan().any()
    probabilities = log_p.exp()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones_like(probabilities[..., 0]), rtol=0, atol=1e-4)
    return probabilities


@every_method
@pytest.mark.parametrize("shots", [1, 5])
def test_one_query(name: str, shots: int) -> None:
    answer(name, features(5 * shots), torch.arange(5).repeat_interleave(shots), features(1, seed=1))


@every_method
def test_one_query_and_one_class(name: str) -> None:
    found = answer(name, features(1), torch.zeros(1, dtype=torch.int64), features(1, seed=1))
    assert found.item() == pytest.approx(1, abs=1e-5)


@every_method
def test_a_class_of_one_shot_beside_one_of_fifty(name: str) -> None:
    labels = torch.tensor([0] + [1] * 50)
    centres = 20 * torch.eye(2, WIDTH)
    found = answer(name, features(51) + centres[labels], labels, features(10, seed=1) + centres[torch.arange(10) % 2])
    assert found.shape == (10, 2)


@every_method
def test_fifty_ways(name: str) -> None:
    if "ways" in vars(ready(name)):
        pytest.skip(f"{name} learns a head for a fixed number of classes, and says so")
    answer(name, features(50), torch.arange(50), features(100, seed=1))


@every_method
def test_duplicated_images(name: str) -> None:
    support, query = features(1).expand(5, -1), features(4, seed=1).repeat(5, 1)
    answer(name, torch.cat([support, query[:5]]), torch.arange(10) % 5, torch.cat([query, support]))


@every_method
@pytest.mark.parametrize("value", [0.0, 1.0, 1000.0])
def test_constant_features(name: str, value: float) -> None:
    constant = torch.full((15, WIDTH), value)
    found = answer(name, constant[:5], torch.arange(5), constant)
    if name in ("protonet", "team", "matchingnet", "simpleshot"):
        torch.testing.assert_close(found, torch.full((15, 5), 0.2), rtol=0, atol=1e-3)


@every_method
def test_float16_features_are_answered_in_float32_and_nearly_alike(name: str) -> None:
    labels = torch.arange(5).repeat_interleave(3)
    support, query = features(15) + 6 * torch.eye(5, WIDTH)[labels], features(20, seed=1)
    half = answer(name, support.half(), labels, query.half())
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, answer(name, support.half().float(), labels, query.half().float()))


@every_method
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_an_absent_class_and_skewed_queries(name: str, dtype: torch.dtype) -> None:
    apart = {label: (features(80, seed=label) + 9 * torch.eye(8, WIDTH)[label]).to(dtype) for label in range(8)}
    for sampling, present in (("balanced", 1), ("dirichlet", 3), ("uniform", None)):
        result = evaluate(
            ready(name), apart, queries=10, episodes=4, sampling=sampling, concentration=0.1, present=present
        )
        assert result.accuracies.isfinite().all()
        assert 0 <= result.calibration_error <= 100
