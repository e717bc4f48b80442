"""Claims about unequal queries: no image twice, the right proportions, small classes give no more than they have."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from team.data.sampler import EpisodeSampler
from team.data.sampling import SAMPLINGS, Sampling, apportion
from team.seeding import generator

CUB_LIKE = torch.arange(50).repeat_interleave(torch.arange(50) % 20 + 41)  # 41 to 60 images per class


def query_counts(sampling: Sampling, labels: Tensor = CUB_LIKE, episodes: int = 4000, **task: int) -> Tensor:
    """Queries of each class in each episode, ``[E, N]``."""
    task = {"ways": 5, "shots": 1, "queries": 15} | task
    drawn = EpisodeSampler(labels, sampling=sampling, **task).sample(episodes, generator(0, "counts"))
    return F.one_hot(drawn.query_labels, task["ways"]).sum(1)


@st.composite
def tasks(draw: st.DrawFn) -> dict[str, Any]:
    ways, shots, queries = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    present = draw(st.none() | st.integers(1, ways))
    enough = shots + -(-ways * queries // (present or ways))  # images of a class if the present ones shared alike
    sizes = draw(st.lists(st.integers(enough, enough + 9), min_size=ways, max_size=7))
    name = draw(st.sampled_from(SAMPLINGS))
    sampling = Sampling(name, draw(st.sampled_from([0.01, 0.3, 2.0, 100.0])), present)
    task = {"ways": ways, "shots": shots, "queries": queries}
    return {"sizes": sizes, "sampling": sampling, "task": task, "seed": draw(st.integers(0, 2**31))}


@given(tasks())
@settings(max_examples=300, deadline=None)
def test_support_and_query_are_disjoint_in_every_sampling(case: dict[str, Any]) -> None:
    sizes, task, sampling = torch.tensor(case["sizes"]), case["task"], case["sampling"]
    labels = torch.arange(len(sizes)).repeat_interleave(sizes)
    labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(case["seed"]))]
    drawn = EpisodeSampler(labels, sampling=sampling, **task).sample(5, generator(case["seed"], "test"))
    ways, shots, total = task["ways"], task["shots"], task["ways"] * task["queries"]
    assert drawn.support.shape == (5, ways * shots)
    assert drawn.query.shape == drawn.query_labels.shape == (5, total)
    for episode in range(5):
        used = torch.cat([drawn.support[episode], drawn.query[episode]]).tolist()
        assert len(set(used)) == ways * shots + total, "no image twice in an episode"
        for index, own in ((drawn.support, drawn.support_labels), (drawn.query, drawn.query_labels)):
            assert torch.equal(labels[index[episode]], drawn.classes[episode][own[episode]])
        assert len(drawn.query_labels[episode].unique()) <= (sampling.present or ways)


def test_balanced_episodes_of_a_seed_are_what_they_always_were() -> None:
    labels = torch.arange(20).repeat_interleave(torch.arange(30, 50))
    drawn = EpisodeSampler(labels, ways=5, shots=5, queries=15).sample(256, generator(0, "evaluation", 0))
    parts = (drawn.support, drawn.query, drawn.support_labels, drawn.query_labels, drawn.classes)
    content = b"".join(part.contiguous().numpy().tobytes() for part in parts)
    assert hashlib.sha256(content).hexdigest().startswith("a40ec8196edbc2f7")


@pytest.mark.parametrize("concentration", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("ways", [5, 8])
def test_dirichlet_proportions_have_the_right_mean_and_variance(concentration: float, ways: int) -> None:
    room = torch.full((20_000, ways), 1000)  # more than enough: nothing is cut off
    proportions = Sampling("dirichlet", concentration).query_counts(room, 1000, generator(0)).double() / 1000
    # Of Dirichlet(a·1_N): mean 1/N, variance (1/N)(1 - 1/N) / (N a + 1). Rounding to whole images hardly adds to it.
    variance = (1 - 1 / ways) / ways / (ways * concentration + 1)
    sigma = (variance / len(room)) ** 0.5
    assert (proportions.mean(0) - 1 / ways).abs().max() < 5 * sigma
    torch.testing.assert_close(proportions.var(0), torch.full((ways,), variance).double(), rtol=0.06, atol=0)


def test_uniform_labels_have_a_multinomials_mean_and_variance() -> None:
    counts = query_counts(Sampling("uniform"), torch.arange(10).repeat_interleave(100)).double()
    assert (counts.mean(0) - 15).abs().max() < 5 * (12 / len(counts)) ** 0.5
    torch.testing.assert_close(counts.var(0), torch.full((5,), 75 * 0.2 * 0.8).double(), rtol=0.15, atol=0)


def test_absent_classes_change_from_episode_to_episode() -> None:
    counts = query_counts(Sampling("balanced", present=3))
    assert set(counts.unique().tolist()) == {0, 25}
    assert ((counts > 0).sum(1) == 3).all()
    shares = (counts > 0).double().mean(0)
    assert (shares - 0.6).abs().max() < 5 * (0.24 / len(counts)) ** 0.5


def test_small_classes_give_what_they_have_and_the_others_the_rest() -> None:
    counts = query_counts(Sampling("dirichlet", 0.1), shots=5)
    assert counts.max() <= 55
    assert (counts.sum(1) == 75).all()
    assert ((counts >= 36) & (counts <= 55)).any(0).all(), "classes are drawn to their limits"


@pytest.mark.parametrize(
    ("wanted", "room", "expected"),
    [
        ([1.2, 2.5, 6.3], [9, 9, 9], [1, 3, 6]),  # the largest remainder
        ([1.6, 2.7, 5.7], [9, 9, 9], [1, 3, 6]),
        ([10.0, 0.0, 0.0], [4, 9, 9], [4, 3, 3]),  # what is missing is spread evenly
        ([8.0, 2.0, 0.0], [4, 9, 9], [4, 4, 2]),
        ([8.0, 2.0, 0.0], [4, 3, 9], [4, 3, 3]),
        ([8.0, 2.0, 0.0], [10, 2, 0], [8, 2, 0]),
    ],
)
def test_apportioning_is_by_largest_remainder_within_limits(
    wanted: list[float], room: list[int], expected: list[int]
) -> None:
    found = apportion(torch.tensor([wanted], dtype=torch.float64), torch.tensor([room]), 10)
    assert found.tolist() == [expected]


@pytest.mark.parametrize(
    ("sampling", "sizes", "words"),
    [
        (Sampling("dirichlet"), [9, 1, 9], "class 1 has 1 images, but 2 shots need 2"),
        (Sampling("dirichlet"), [9, 2, 9], None),
        (Sampling("dirichlet"), [4, 3, 9], "an episode has 6 queries, but its 2 classes with queries may have only 3"),
        (Sampling("balanced", present=1), [9, 9, 7], "its 1 classes with queries may have only 5 images left"),
        (Sampling("balanced", present=1), [9, 9, 8], None),
    ],
)
def test_classes_too_small_for_some_episode_are_named_at_the_door(
    sampling: Sampling, sizes: list[int], words: str | None
) -> None:
    labels = torch.arange(3).repeat_interleave(torch.tensor(sizes))
    if words is None:
        EpisodeSampler(labels, ways=2, shots=2, queries=3, sampling=sampling).sample(50, generator(0))
        return
    with pytest.raises(ValueError, match=words):
        EpisodeSampler(labels, ways=2, shots=2, queries=3, sampling=sampling)
