"""How long a figure in a table takes: 1000 episodes from features, and embedding the images they come from."""

from __future__ import annotations

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from torch import Tensor

from team import create_backbone, create_method, evaluate
from team.evaluation import embed


def random_features(dimension: int) -> dict[int, Tensor]:
    random = torch.Generator().manual_seed(0)
    centres = torch.randn(20, 1, dimension, generator=random)
    return dict(enumerate((centres + 2 * torch.randn(20, 600, dimension, generator=random)) / dimension**0.5))


@pytest.mark.parametrize("dimension", [256, 512])
@pytest.mark.parametrize("shots", [1, 5])
@pytest.mark.parametrize("name", ["protonet", "team"])
def test_1000_episodes(benchmark: BenchmarkFixture, name: str, shots: int, dimension: int) -> None:
    method, features = create_method(name), random_features(dimension)
    benchmark.group = f"1000 episodes, {shots}-shot, {dimension} features"
    benchmark.pedantic(lambda: evaluate(method, features, shots=shots, episodes=1000), rounds=2, warmup_rounds=1)


@pytest.mark.parametrize(("name", "size"), [("conv4", 84), ("resnet18", 84)])
def test_embedding_64_images(benchmark: BenchmarkFixture, name: str, size: int) -> None:
    network = create_backbone(name)
    images = torch.randint(0, 256, (64, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    benchmark.group = f"embedding, {name}, 64 images of {size} px"
    benchmark.pedantic(embed, args=(network, images), rounds=3, warmup_rounds=1)
