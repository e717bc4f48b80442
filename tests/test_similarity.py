"""Claims about Bi-SIM (Sec. 3.4): it is the plain formula, normalised each way, and finite whatever the size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
import torch

from team import bidirectional_log_similarity
from team.similarity import log_similarity


def test_it_equals_the_product_of_both_softmaxes() -> None:
    distances = torch.rand(3, 7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 9
    result = bidirectional_log_similarity(distances).exp()
    for index in range(3):
        expected = reference.bidirectional_similarity(distances[index].numpy())
        np.testing.assert_allclose(result[index].numpy(), expected, rtol=1e-12)


def test_each_direction_is_normalised() -> None:
    """Two equal classes leave s_{i->c} = 1/2 for all; two equal queries leave s_{c->i} = 1/2 for all."""
    column = torch.tensor([[1.0], [2.0], [5.0]])
    by_class = bidirectional_log_similarity(column.expand(3, 2)).exp()
    torch.testing.assert_close(by_class.sum(0), torch.full((2,), 0.5))
    by_query = bidirectional_log_similarity(column.T.expand(2, 3)).exp()
    torch.testing.assert_close(by_query.sum(1), torch.full((2,), 0.5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_finite_for_100_000_queries_and_for_distances_of_ten_thousand(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    near = torch.rand(100_000, 5, dtype=dtype, generator=generator)
    far = torch.rand(1_000, 5, dtype=dtype, generator=generator) * 1e4
    for distances in (near, far, torch.full((50, 5), 1e4, dtype=dtype), torch.zeros(50, 5, dtype=dtype)):
        result = bidirectional_log_similarity(distances)
        assert bool(torch.isfinite(result).all())
        assert result.dtype == dtype
        assert float(result.max()) <= 0


def test_one_query_is_judged_by_its_classes_alone() -> None:
    distances = torch.tensor([[1.0, 3.0, 2.0]])
    torch.testing.assert_close(bidirectional_log_similarity(distances), (-distances).log_softmax(-1))


def test_its_gradient_is_right() -> None:
    distances = torch.rand(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    assert torch.autograd.gradcheck(bidirectional_log_similarity, distances)
    assert torch.autograd.gradcheck(log_similarity, distances)


@pytest.mark.parametrize(
    ("distances", "error", "words"),
    [
        (np.ones((3, 2)), TypeError, "floating point torch.Tensor"),
        (torch.ones(3, 2, dtype=torch.int64), TypeError, "floating point torch.Tensor"),
        (torch.ones(3), ValueError, r"shape \[..., Q, N\] with Q, N >= 1, not \[3\]"),
        (torch.ones(0, 5), ValueError, r"not \[0, 5\]"),
        (torch.tensor([[1.0, torch.nan]]), ValueError, "finite and not negative"),
        (torch.tensor([[1.0, torch.inf]]), ValueError, "finite and not negative"),
        (torch.tensor([[1.0, -0.5]]), ValueError, "finite and not negative"),
    ],
)
def test_wrong_distances_are_turned_away(distances: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        bidirectional_log_similarity(distances)
