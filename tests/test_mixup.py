"""Blended images in pre-training."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from conftest import tiny_images, tiny_model
from torch.nn import functional as F

from team.model import load_model
from team.seeding import generator
from team.training.loop import train
from team.training.mixup import blend, draw_parts
from team.training.pretrain import Pretraining
from team.training.settings import PretrainSettings, to_json
from team.training.teacher import Teacher

SETTINGS = PretrainSettings(epochs=2, batch=16, validations=1, validation_episodes=10, mixup=0.5)


def test_the_drawn_share_of_images_keeps_half_to_all_of_itself() -> None:
    parts = draw_parts(20_000, 0.3, generator(0))
    mixed = parts[parts < 1]
    assert len(mixed) / len(parts) == pytest.approx(0.3, abs=0.02)
    assert mixed.min() >= 0.5
    assert mixed.mean() == pytest.approx(0.75, abs=0.01)


def test_each_is_blended_with_the_one_before_it() -> None:
    images, parts = torch.randn(3, 3, 4, 4), torch.tensor([1.0, 0.75, 0.5])
    mixed = blend(images, parts)
    assert torch.equal(mixed[0], images[0])
    torch.testing.assert_close(mixed[1], 0.75 * images[1] + 0.25 * images[0])
    torch.testing.assert_close(mixed[2], 0.5 * images[2] + 0.5 * images[1])


@pytest.mark.parametrize("teaching", [0.0, 0.4])
def test_the_loss_weighs_both_labels_by_their_parts(teaching: float) -> None:
    images = tiny_images(6, 20)
    teacher = tiny_model() if teaching else None
    settings = replace(SETTINGS, teaching=teaching)
    objective = Pretraining(tiny_model(), images, images, settings, teacher=teacher)
    objective.module.eval()
    inputs = objective.draw(3)
    index, parts = inputs["index"], inputs["parts"]
    pixels = settings.augmentation.apply(images.images[index], inputs["augmentation"], 32)
    scores = objective.module["classifier"](objective.model.network(blend(pixels, parts)))
    own, other = (
        F.cross_entropy(scores, labels, reduction="none")
        for labels in (images.labels[index], images.labels[index].roll(1))
    )
    expected = (parts * own + (1 - parts) * other).mean()
    if teacher is not None:
        soft = Teacher(teacher.network, teacher.size, images, settings.augmentation, settings.teacher_temperature)
        taught = soft(images.images[index], inputs["augmentation"], partial(blend, parts=parts))
        expected = (1 - teaching) * expected + teaching * F.cross_entropy(scores, taught)
    torch.testing.assert_close(objective.loss(inputs)[0], expected)


def test_pretraining_with_blends_and_turned_copies_runs(tmp_path: Path) -> None:
    images = tiny_images(6, 20)
    train(Pretraining(tiny_model(), images, images, replace(SETTINGS, rotation=1.0)), tmp_path, show=False)
    about = load_model(tmp_path / "best.safetensors").info["pretraining"]["settings"]
    assert about["mixup"] == 0.5
    assert "mixup" not in to_json(replace(SETTINGS, mixup=0.0))


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_outside_its_range_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="mixup must be from 0 to 1"):
        replace(SETTINGS, mixup=share)
