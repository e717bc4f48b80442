"""The published class splits: disjoint, complete, and what the literature says they are."""

from __future__ import annotations

import pytest

from team.data import DATASETS
from team.data.splits import PARTS, Split, split_names

SIZES = {
    ("miniimagenet", "ravi"): (64, 16, 20),
    ("cifar100", "cifar-fs"): (64, 16, 20),
    ("cifar100", "dualtrinet"): (64, 16, 20),
    ("cifar100", "fc100"): (60, 20, 20),
    ("cub", "closerlook"): (100, 50, 50),
    ("cub", "dualtrinet"): (100, 50, 50),
}


@pytest.mark.parametrize(("name", "split"), SIZES)
def test_published_splits_are_disjoint_and_of_their_published_sizes(name, split):
    parts = [Split(DATASETS[name], split).classes(part) for part in PARTS]
    assert tuple(map(len, parts)) == SIZES[name, split]
    assert len({label for part in parts for label in part}) == sum(SIZES[name, split])


@pytest.mark.parametrize("name", ["cifar100", "cub"])
def test_every_split_of_a_data_set_covers_the_same_classes(name):
    covered = {
        frozenset(label for part in PARTS for label in Split(DATASETS[name], split).classes(part))
        for split in split_names(DATASETS[name])
    }
    assert len(covered) == 1


def test_the_defaults_are_those_of_todays_literature():
    assert [split_names(DATASETS[name])[0] for name in ("miniimagenet", "cifar100", "cub")] == [
        "ravi",
        "cifar-fs",
        "closerlook",
    ]
    assert Split(DATASETS["cub"], None).label == "closerlook"


def test_closerlook_follows_its_rule():
    split = Split(DATASETS["cub"], "closerlook")
    names = sorted(name for part in PARTS for name in split.classes(part))
    assert set(split.classes("train")) == set(names[0::2])
    assert set(split.classes("val")) == set(names[1::4])
    assert set(split.classes("test")) == set(names[3::4])
