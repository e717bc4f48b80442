"""Claims about drawing: support and query never meet, every image has the same chance, a seed decides everything."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from team.data.sampler import EpisodeIndices, EpisodeSampler
from team.seeding import generator


def shuffled_labels(sizes: list[int], seed: int = 0) -> Tensor:
    """Labels of classes of these sizes, in no order."""
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))]


def chi_square(counts: Tensor) -> float:
    """Of the claim that all counts have one expectation."""
    expected = counts.double().mean()
    return float(((counts - expected) ** 2 / expected).sum())


@st.composite
def tasks(draw: st.DrawFn) -> dict[str, Any]:
    shots, queries = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(shots + queries, shots + queries + 6), min_size=2, max_size=7))
    ways = draw(st.integers(1, len(sizes)))
    return {"sizes": sizes, "ways": ways, "shots": shots, "queries": queries, "seed": draw(st.integers(0, 2**31))}


@given(tasks())
@settings(max_examples=100, deadline=None)
def test_support_and_query_are_disjoint_and_belong_to_the_classes_they_are_labelled_with(task: dict[str, Any]) -> None:
    labels = shuffled_labels(task["sizes"], task["seed"])
    ways, shots, queries = task["ways"], task["shots"], task["queries"]
    drawn = EpisodeSampler(labels, ways=ways, shots=shots, queries=queries).sample(5, generator(task["seed"], "test"))
    assert drawn.support.shape == drawn.support_labels.shape == (5, ways * shots)
    assert drawn.query.shape == drawn.query_labels.shape == (5, ways * queries)
    for episode in range(5):
        used = torch.cat([drawn.support[episode], drawn.query[episode]]).tolist()
        assert len(set(used)) == ways * (shots + queries), "no image twice in an episode"
        assert len(set(drawn.classes[episode].tolist())) == ways, "no class twice in an episode"
        for index, own, count in (
            (drawn.support, drawn.support_labels, shots),
            (drawn.query, drawn.query_labels, queries),
        ):
            assert torch.equal(labels[index[episode]], drawn.classes[episode][own[episode]])
            assert torch.bincount(own[episode], minlength=ways).tolist() == [count] * ways


def test_every_image_is_support_and_query_equally_often_whatever_its_place_in_its_class() -> None:
    # Without the shuffle after Floyd's algorithm, the first images of a class would be support far more often.
    sizes = [6, 6, 6]
    labels = shuffled_labels(sizes)
    drawn = EpisodeSampler(labels, ways=2, shots=1, queries=3).sample(9000, generator(0, "uniformity"))
    support = torch.bincount(drawn.support.flatten(), minlength=18)
    query = torch.bincount(drawn.query.flatten(), minlength=18)
    assert chi_square(torch.bincount(drawn.classes.flatten())) < 20, "classes"  # 1 in 20 000 for two degrees of freedom
    assert chi_square(support) < 50, "support"  # 1 in 20 000 for 17 degrees of freedom
    assert chi_square(query) < 50, "query"


def test_every_set_of_images_is_drawn_equally_often() -> None:
    drawn = EpisodeSampler(torch.zeros(5, dtype=torch.int64), ways=1, shots=2, queries=1).sample(
        6000, generator(0, "sets")
    )
    support = drawn.support.sort(-1).values
    which = (support[:, 0] * 5 + support[:, 1]) * 5 + drawn.query[:, 0]
    counts = torch.unique(which, return_counts=True)[1]
    assert len(counts) == 10 * 3, "two of five as support, one of the other three as query"
    assert chi_square(counts) < 70  # 1 in 30 000 for 29 degrees of freedom


def test_all_images_of_small_and_large_classes_are_reached() -> None:
    sizes = [3, 4, 50]
    drawn = EpisodeSampler(shuffled_labels(sizes), ways=3, shots=1, queries=2).sample(1500, generator(0, "reach"))
    assert set(drawn.support.flatten().tolist()) == set(range(sum(sizes)))
    assert set(drawn.query.flatten().tolist()) == set(range(sum(sizes)))


def test_a_class_with_just_enough_images_gives_all_of_them() -> None:
    labels = shuffled_labels([5, 9])
    drawn = EpisodeSampler(labels, ways=2, shots=2, queries=3).sample(20, generator(0, "exact"))
    small = (labels == 0).nonzero().flatten().tolist()
    for episode in range(20):
        used = torch.cat([drawn.support[episode], drawn.query[episode]])
        assert sorted(used[labels[used] == 0].tolist()) == small


def same(first: EpisodeIndices, second: EpisodeIndices) -> bool:
    return all(torch.equal(getattr(first, name), getattr(second, name)) for name in vars(first))


def test_the_generator_alone_decides_the_episodes() -> None:
    sampler = EpisodeSampler(shuffled_labels([9] * 6), ways=3, shots=2, queries=3)
    first = sampler.sample(4, generator(0, "episode", 1))
    torch.manual_seed(77)
    assert same(first, sampler.sample(4, generator(0, "episode", 1)))
    assert not same(first, sampler.sample(4, generator(1, "episode", 1)))
    assert not same(first, sampler.sample(4, generator(0, "episode", 2)))


@pytest.mark.parametrize(
    ("sizes", "change", "words"),
    [
        ([9, 9], {"ways": 3}, "3-way episodes need at least 3 classes; there are 2"),
        ([9, 4, 9], {}, "class 1 has 4 images, but 2 shots and 3 queries per class need 5"),
        ([9, 0, 9], {}, "class 1 has 0 images"),
        ([9, 9], {"ways": 0}, "ways must be a whole number, 1 or more, not 0"),
        ([9, 9], {"shots": -1}, "shots must be a whole number, 1 or more, not -1"),
        ([9, 9], {"queries": 1.5}, "queries must be a whole number, 1 or more, not 1.5"),
        ([9, 9], {"shots": True}, "shots must be a whole number"),
        ([9, 9], {"unlabelled": -1}, "unlabelled must be a whole number, 0 or more, not -1"),
        ([9, 8], {"unlabelled": 4}, "class 1 has only 3 images beside support and query, but 4 unlabelled"),
        ([9, 9], {"labelled": torch.arange(18) % 3 == 0}, "labelled images, but 2 shots and 3 queries per class"),
    ],
)
def test_impossible_episodes_are_turned_away(sizes: list[int], change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        EpisodeSampler(shuffled_labels(sizes), **{"ways": 2, "shots": 2, "queries": 3} | change)


@pytest.mark.parametrize(
    "labels", [torch.zeros(9), torch.zeros(0, dtype=torch.int64), torch.zeros(3, 3, dtype=torch.int64), [0, 1]]
)
def test_labels_must_be_one_whole_number_per_image(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"labels must be a tensor of integers \[n\]"):
        EpisodeSampler(labels, ways=1, shots=1, queries=1)


def test_no_episodes_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="episodes must be 1 or more, not 0"):
        EpisodeSampler(shuffled_labels([4]), ways=1, shots=1, queries=1).sample(0, generator(0))


# --- seeds ------------------------------------------------------------------------------------------------------------


def numbers(*place: Any) -> list[float]:
    return torch.rand(4, generator=generator(*place)).tolist()


def test_a_place_always_has_the_same_numbers_and_every_place_has_others() -> None:
    places = [(0,), (1,), (-1,), (0, 1), (0, "1"), (0, "episode"), (0, "episode", 1), (0, "episode", 11), (0, 1, 1)]
    drawn = [numbers(*place) for place in places]
    assert [numbers(*place) for place in places] == drawn
    assert len({tuple(values) for values in drawn}) == len(places)


def test_neighbouring_steps_are_independent() -> None:
    first = torch.stack([torch.rand(50, generator=generator(0, "episode", step)) for step in range(400)])
    correlation = torch.corrcoef(torch.stack([first[:-1].flatten(), first[1:].flatten()]))[0, 1]
    assert abs(float(correlation)) < 4 / (399 * 50) ** 0.5


def test_the_numbers_of_a_place_do_not_change_between_versions() -> None:
    drawn = torch.randint(1 << 30, (3,), generator=generator(0, "episode", 5))
    assert drawn.tolist() == [1031163293, 347543133, 248454635]


@pytest.mark.parametrize("seed", [1.0, "1", True, None])
def test_a_seed_must_be_a_whole_number(seed: Any) -> None:
    with pytest.raises(TypeError, match="a seed must be a whole number"):
        generator(seed)
