"""Claims about episodes: prototypes are class means, and wrong input is turned away with words that help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
import torch
from torch import Tensor

from team.episode import Episode, check_episode, check_features, class_means


def episode(shots: tuple[int, ...] = (1, 3, 2), batch: int | None = 2) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(map(torch.from_numpy, reference.random_episode(0, shots=shots, batch=batch)))  # type: ignore[return-value]


def test_prototypes_are_the_means_of_unequal_classes() -> None:
    support, labels, query = episode()
    prototypes = check_episode(support, labels, query).prototypes()
    for index in range(2):
        expected = reference.prototypes(support[index].numpy(), labels[index].numpy())
        np.testing.assert_allclose(prototypes[index].numpy(), expected, rtol=1e-12)


def test_class_means_take_soft_membership() -> None:
    features = torch.tensor([[[0.0], [4.0]]])
    membership = torch.tensor([[[1.0, 0.25], [1.0, 0.75]]])
    assert class_means(features, membership).flatten().tolist() == [2.0, 3.0]


def test_one_episode_becomes_a_batch_of_one_and_ways_are_counted() -> None:
    support, labels, query = episode(batch=None)
    checked = check_episode(support, labels.to(torch.int16), query)
    assert checked.support.shape == (1, 6, 6)
    assert checked.query.shape == (1, 7, 6)
    assert checked.labels.dtype == torch.int64
    assert checked.ways == 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_prototypes_of_half_precision_features_are_float32(dtype: torch.dtype) -> None:
    support, labels, query = (t.to(dtype) if t.is_floating_point() else t for t in episode())
    prototypes = check_episode(support, labels, query).prototypes()
    exact = check_episode(support.double(), labels, query.double()).prototypes()
    assert prototypes.dtype == torch.float32
    torch.testing.assert_close(prototypes.double(), exact, rtol=1e-5, atol=1e-6)


def test_an_episode_built_by_trusted_code_is_not_looked_at() -> None:
    unchecked = Episode(torch.full((1, 2, 3), torch.nan), torch.tensor([[0, 1]]), torch.zeros(1, 4, 3), ways=2)
    assert unchecked.membership().tolist() == [[[1.0, 0.0], [0.0, 1.0]]]


GOOD: dict[str, Any] = {
    "support": torch.arange(24.0).reshape(4, 6),
    "labels": torch.tensor([0, 1, 0, 2]),
    "query": torch.ones(5, 6),
}
BATCH: dict[str, Any] = {
    "support": torch.arange(48.0).reshape(2, 4, 6),
    "labels": torch.tensor([[0, 1, 0, 2], [2, 1, 0, 2]]),
    "query": torch.ones(2, 5, 6),
}
BAD_EPISODES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"support": np.zeros((4, 6))}, TypeError, "support must be a torch.Tensor, not ndarray; use torch.as_tensor"),
    ({"query": [[1.0] * 6]}, TypeError, "query must be a torch.Tensor, not list"),
    ({"labels": np.array([0, 1, 0, 2])}, TypeError, "labels must be a torch.Tensor of integers, not ndarray"),
    ({"support": torch.zeros(4)}, ValueError, r"support must have shape \[n, d\] or \[B, n, d\], not \[4\]"),
    ({"query": torch.zeros(1, 1, 5, 6)}, ValueError, r"query must have shape .* not \[1, 1, 5, 6\]"),
    ({"support": torch.zeros(4, 6, dtype=torch.int64)}, TypeError, r"support must hold floating point.*\.float\(\)"),
    ({"query": torch.zeros(5, 6, dtype=torch.complex64)}, TypeError, "query must hold floating point"),
    ({"query": torch.zeros(0, 6)}, ValueError, r"query is empty: its shape is \[0, 6\]"),
    ({"support": torch.zeros(4, 0), "query": torch.zeros(5, 0)}, ValueError, "support is empty"),
    ({"support": torch.full((4, 6), torch.nan)}, ValueError, "support holds NaN or infinite values"),
    ({"query": torch.full((5, 6), -torch.inf)}, ValueError, "query holds NaN or infinite values"),
    ({"query": torch.ones(2, 5, 6)}, ValueError, "must both be one episode, or both a batch"),
    ({"query": torch.ones(5, 7)}, ValueError, "support has 6 features per sample, query 7"),
    ({**BATCH, "query": torch.ones(3, 5, 6)}, ValueError, "support holds 2 episodes and query 3"),
    ({"query": torch.ones(5, 6, dtype=torch.float64)}, ValueError, "support is torch.float32.*query torch.float64"),
    ({"unlabelled": [[1.0] * 6]}, TypeError, "unlabelled must be a torch.Tensor, not list"),
    ({"unlabelled": torch.zeros(0, 6)}, ValueError, r"unlabelled is empty: its shape is \[0, 6\]"),
    ({"unlabelled": torch.ones(5, 7)}, ValueError, "support has 6 features per sample, unlabelled 7"),
    ({**BATCH, "unlabelled": torch.ones(5, 6)}, ValueError, "must both be one episode, or both a batch"),
    ({**BATCH, "unlabelled": torch.ones(3, 5, 6)}, ValueError, "support holds 2 episodes and unlabelled 3"),
    ({"labels": torch.tensor([0.0, 1, 0, 2])}, TypeError, r"labels must be integers 0..N-1.*use labels.long\(\)"),
    ({"labels": torch.tensor([True, False, True, True])}, TypeError, "labels must be integers 0..N-1, not torch.bool"),
    ({"labels": torch.tensor([0, 1, 2])}, ValueError, r"labels must have shape \[4\], one per support sample"),
    ({**BATCH, "labels": torch.tensor([0, 1, 0, 2])}, ValueError, r"labels must have shape \[2, 4\]"),
    ({"labels": torch.tensor([0, -1, 0, 1])}, ValueError, "labels must be 0..N-1, but one is -1"),
    ({"labels": torch.tensor([0, 2, 0, 2])}, ValueError, "class 1 has no support sample, though labels go up to 2"),
    ({"labels": torch.tensor([1, 1, 2, 2])}, ValueError, "class 0 has no support sample"),
    ({"labels": torch.tensor([0, 1, 2, 900])}, ValueError, "there would be 901 classes, but an episode has only 4"),
    (
        {**BATCH, "labels": torch.tensor([[0, 1, 0, 2], [0, 1, 0, 1]])},
        ValueError,
        "class 2 has no support sample in episode 1.*the same N for every episode",
    ),
]


@pytest.mark.parametrize(("change", "error", "words"), BAD_EPISODES)
def test_wrong_input_is_turned_away_with_words_that_help(
    change: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        check_episode(**{**GOOD, **change})


def test_good_input_passes_the_same_door() -> None:
    assert check_episode(**GOOD).ways == 3
    assert check_episode(**BATCH).ways == 3


def test_one_rank_can_be_asked_for() -> None:
    with pytest.raises(ValueError, match=r"features must have shape \[n, d\], not \[1, 2, 3\]"):
        check_features("features", torch.zeros(1, 2, 3), dims=(2,))
