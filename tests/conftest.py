"""What all tests share: one thread, and images, networks and settings small enough to train on within a second."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from team.data.images import ImageSet
from team.mixing import MixingSchedule
from team.model import Model
from team.training.settings import EpisodicSettings, PretrainSettings


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """What is computed here is so small that threads on a busy machine wait for one another a hundred times longer."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tiny_images(classes: int = 8, each: int = 8, *, size: int = 32, seed: int = 0, noise: float = 60.0) -> ImageSet:
    """Every class is a pattern of 4×4 patches, every image of it that pattern under noise."""
    random = torch.Generator().manual_seed(seed)
    patterns = F.interpolate(torch.rand(classes, 3, 4, 4, generator=random) * 255, size)
    images = patterns.repeat_interleave(each, 0)
    images = images + noise * torch.randn(images.shape, generator=random)
    labels = torch.arange(classes).repeat_interleave(each)
    names = tuple(f"class {number}" for number in range(classes))
    checksum = f"{classes} {each} {size} {seed} {noise}"
    return ImageSet(images.clamp(0, 255).to(torch.uint8), labels, names, "tiny images", checksum)


def tiny_model(method: str = "team", *, filters: int = 4, seed: int = 0, **options: Any) -> Model:
    """A ConvNet of four filters, its weights drawn from the seed, with the method and its options."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Model.create("conv4", method, 32, backbone_options={"filters": filters}, method_options=options)


def tiny_episodic(**changes: Any) -> EpisodicSettings:
    values: dict[str, Any] = {
        "ways": 3,
        "queries": 3,
        "episodes": 20,
        "validate_every": 10,
        "validation_episodes": 10,
        "validation_ways": 3,
        "validation_queries": 3,
        "mixing": MixingSchedule(start=2, on=2, off=1),
    }
    return EpisodicSettings(**values | changes)


def tiny_pretraining(**changes: Any) -> PretrainSettings:
    values: dict[str, Any] = {"epochs": 5, "batch": 32, "validations": 2, "validation_episodes": 10}
    return PretrainSettings(**values | changes)
