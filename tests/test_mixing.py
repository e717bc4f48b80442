"""Claims about task internal mixing (Sec. 3.2): Eq. 2, within a task, by a seed, on a schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
import torch
from torch import Tensor

from team import task_internal_mixing
from team.mixing import MixingSchedule, draw_mixing, mix


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def one_hot_images(*shape: int) -> Tensor:
    """Sample i is the i-th unit vector, so a mixture shows who is in it and with which weight."""
    return torch.eye(shape[-1], dtype=torch.float64).expand(*shape, shape[-1])


def test_mixing_equals_equation_2() -> None:
    images = torch.rand(6, 3, 4, 4, dtype=torch.float64, generator=seeded())
    partner, weight = draw_mixing((6,), 0.5, 1.0, seeded(1))
    expected = reference.mixed(images.numpy(), partner.numpy(), weight.numpy())
    np.testing.assert_allclose(mix(images, partner, weight.double()).numpy(), expected, rtol=1e-12)
    public, _ = task_internal_mixing(images, torch.arange(6), generator=seeded(1))
    np.testing.assert_allclose(public.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(("low", "high"), [(0.5, 1.0), (0.7, 0.8), (0.5, 0.51)])
def test_the_heavier_image_keeps_its_label_and_the_partner_is_another_sample(low: float, high: float) -> None:
    labels = torch.arange(20) // 4
    for seed in range(20):
        mixed, kept = task_internal_mixing(one_hot_images(20), labels, low=low, high=high, generator=seeded(seed))
        own = mixed.diagonal()
        assert torch.equal(kept, labels)
        assert bool(((own >= low - 1e-6) & (own <= high + 1e-6)).all())
        assert bool(((mixed > 0).sum(1) <= 2).all()), "no more than two images in a mixture"
        partner, _ = draw_mixing((20,), low, high, seeded(seed))
        assert not bool((partner == torch.arange(20)).any()), "never its own partner"


def test_every_other_sample_can_be_the_partner() -> None:
    partner, weight = draw_mixing((2000, 4), 0.5, 1.0, seeded())
    for sample in range(4):
        assert set(partner[:, sample].tolist()) == set(range(4)) - {sample}
    assert float(weight.min()) < 0.51
    assert float(weight.max()) > 0.99


def test_tasks_of_a_batch_are_mixed_within_themselves_only() -> None:
    images = torch.zeros(3, 5, 1, 2, 2)
    for task in range(3):
        images[task] = 10.0**task
    mixed, labels = task_internal_mixing(images, torch.arange(5).expand(3, 5), generator=seeded())
    torch.testing.assert_close(mixed, images)
    assert labels.shape == (3, 5)
    spread, _ = task_internal_mixing(one_hot_images(3, 5), torch.zeros(3, 5), generator=seeded())
    assert not torch.equal(spread[0], spread[1]), "each task draws its own partners"


def test_the_same_seed_gives_the_same_mixture_and_global_state_is_not_needed() -> None:
    images, labels = torch.rand(8, 3, 5, 5, generator=seeded()), torch.arange(8)
    first, _ = task_internal_mixing(images, labels, generator=seeded(5))
    torch.manual_seed(123)
    again, _ = task_internal_mixing(images, labels, generator=seeded(5))
    other, _ = task_internal_mixing(images, labels, generator=seeded(6))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_input_is_left_as_it_was_and_half_precision_stays() -> None:
    images = torch.rand(6, 3, 4, 4, generator=seeded()).half()
    before = images.clone()
    mixed, _ = task_internal_mixing(images, torch.arange(6), generator=seeded())
    assert torch.equal(images, before)
    assert mixed.dtype == torch.float16


def test_the_schedule_starts_runs_and_rests_exactly() -> None:
    schedule = MixingSchedule(start=3, on=2, off=3)
    assert [i for i in range(15) if schedule.active(i)] == [3, 4, 8, 9, 13, 14]
    paper = MixingSchedule()
    assert not any(paper.active(i) for i in range(5000))
    assert [paper.active(i) for i in range(5000, 5010)] == [True, True, True, True, False] * 2
    always = MixingSchedule(start=0, on=1, off=0)
    assert all(always.active(i) for i in range(7))


IMAGES = torch.zeros(4, 3, 2, 2)
LABELS = torch.arange(4)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"images": IMAGES.numpy()}, TypeError, "must be torch.Tensors"),
        ({"labels": [0, 1, 2, 3]}, TypeError, "must be torch.Tensors"),
        ({"images": IMAGES.to(torch.uint8)}, TypeError, r"images must be floating point.*images.float\(\) / 255"),
        ({"low": 0.4}, ValueError, "need 0.5 <= low < high <= 1, not low=0.4"),
        ({"low": 0.8, "high": 0.8}, ValueError, "need 0.5 <= low < high"),
        ({"low": 0.9, "high": 0.6}, ValueError, "need 0.5 <= low < high"),
        ({"high": 1.1}, ValueError, "high=1.1"),
        ({"high": float("nan")}, ValueError, "high=nan"),
        ({"labels": LABELS[:3]}, ValueError, r"labels \[3\] must be \[n\] or \[B, n\]"),
        ({"labels": torch.tensor(1)}, ValueError, "labels"),
        ({"images": IMAGES[:1], "labels": LABELS[:1]}, ValueError, "at least two samples"),
    ],
)
def test_wrong_input_is_turned_away(change: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        task_internal_mixing(**{"images": IMAGES, "labels": LABELS, **change})


@pytest.mark.parametrize("change", [{"start": -1}, {"on": 0}, {"off": -2}])
def test_a_schedule_that_makes_no_sense_is_turned_away(change: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="need start >= 0, on >= 1, off >= 0"):
        MixingSchedule(**change)
