"""Turned copies in pre-training, and the mean of two mirrored views at test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import tiny_images, tiny_model
from torch.nn import functional as F

from team.backbones import create_backbone
from team.labelling.embedders import find_embedder
from team.model import load_model
from team.training.loop import train
from team.training.pretrain import Pretraining
from team.training.rotation import rotation_loss, with_turned
from team.training.settings import PretrainSettings, to_json

SETTINGS = PretrainSettings(epochs=2, batch=16, validations=1, validation_episodes=10, rotation=0.5)


def test_copies_are_turned_as_rot90_does() -> None:
    images = torch.randn(4, 3, 6, 6)
    both = with_turned(images, torch.arange(4))
    assert torch.equal(both[:4], images)
    for quarters in range(4):
        assert torch.equal(both[4 + quarters], torch.rot90(images[quarters], quarters, (-2, -1)))


def test_originals_count_as_upright() -> None:
    scores, quarters = torch.randn(6, 4), torch.tensor([1, 3, 2])
    assert torch.equal(rotation_loss(scores, quarters), F.cross_entropy(scores, torch.tensor([0, 0, 0, 1, 3, 2])))


def test_the_loss_is_that_of_the_classes_and_the_turns() -> None:
    images = tiny_images(6, 20)
    both, alone = (
        Pretraining(tiny_model(), images, images, replace(SETTINGS, rotation=weight), compile=False)
        for weight in (0.5, 0.0)
    )
    alone.model.network.load_state_dict(both.model.network.state_dict())
    both.module.eval(), alone.module.eval()
    inputs = both.draw(3)
    assert set(inputs["quarters"].tolist()) <= {1, 2, 3}
    upright = {name: inputs[name] for name in ("index", "augmentation")}
    pixels = SETTINGS.augmentation.apply(images.images[inputs["index"]], inputs["augmentation"], 32)
    features = both.model.network(with_turned(pixels, inputs["quarters"]))
    turns = rotation_loss(both.module["rotation"](features), inputs["quarters"])
    torch.testing.assert_close(both.loss(inputs)[0], alone.loss(upright)[0] + 0.5 * turns)


def test_pretraining_with_turned_copies_leaves_only_the_network(tmp_path: Path) -> None:
    images = tiny_images(6, 20)
    train(Pretraining(tiny_model(), images, images, SETTINGS), tmp_path, show=False)
    model = load_model(tmp_path / "best.safetensors")
    assert model.network.state_dict().keys() == tiny_model().network.state_dict().keys()
    assert model.info["pretraining"]["settings"]["rotation"] == 0.5
    assert "rotation" not in to_json(replace(SETTINGS, rotation=0.0))


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="rotation must be finite and not negative"):
        replace(SETTINGS, rotation=-1.0)


@pytest.mark.parametrize("name", ["conv4", "resnet18"])
def test_mirrored_features_are_the_mean_of_both_views_at_test_only(name: str) -> None:
    both, plain = create_backbone(name, mirror=True), create_backbone(name)
    plain.load_state_dict(both.state_dict())
    images = torch.randn(3, 3, 40, 40)
    both.eval(), plain.eval()
    torch.testing.assert_close(both(images), (plain(images) + plain(images.flip(-1))) / 2)
    torch.testing.assert_close(both(images), both(images.flip(-1)))
    both.train(), plain.train()
    torch.testing.assert_close(both(images), plain(images))


def test_zoomed_features_are_the_mean_of_three_sizes_at_test_only() -> None:
    both, mirrored = create_backbone("resnet18", zoom=True, mirror=True), create_backbone("resnet18", mirror=True)
    zoomed, plain = create_backbone("resnet18", zoom=True), create_backbone("resnet18")
    for network in (both, mirrored, zoomed):
        network.load_state_dict(plain.state_dict())
    networks = [both, mirrored, zoomed, plain]
    assert [network.eval().views for network in networks] == [6, 2, 3, 1]
    images = torch.randn(2, 3, 80, 80)
    larger = F.interpolate(images, (90, 90), mode="bilinear")
    middle = F.interpolate(images[..., 8:72, 8:72], (80, 80), mode="bilinear")
    for network, single in ((zoomed, plain), (both, mirrored)):
        expected = (single(images) + single(larger) + single(middle)) / 3
        torch.testing.assert_close(network(images), expected, rtol=1e-4, atol=1e-5)
    assert zoomed(images[..., :72]).shape == (2, 512)
    zoomed.train(), plain.train()
    torch.testing.assert_close(zoomed(images), plain(images))


def test_features_of_two_views_are_not_taken_for_those_of_one() -> None:
    model, mirrored = tiny_model(), tiny_model()
    mirrored.network.mirror, mirrored.backbone_options = True, {"filters": 4, "mirror": True}
    assert find_embedder(model).key != find_embedder(mirrored).key
