"""How long drawing takes: episodes, and what augmentation does with each image."""

from __future__ import annotations

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from team.data.augment import Augmentation
from team.data.sampler import EpisodeSampler
from team.seeding import generator

LABELS = torch.arange(64).repeat_interleave(600)


@pytest.mark.parametrize("shots", [1, 5])
def test_1000_episodes_from_64_classes_of_600_images(benchmark: BenchmarkFixture, shots: int) -> None:
    sampler = EpisodeSampler(LABELS, ways=5, shots=shots, queries=15)
    benchmark.group = "sampler, 1000 episodes"
    benchmark(lambda: sampler.sample(1000, generator(0, "benchmark")))


def test_one_episode_at_a_time(benchmark: BenchmarkFixture) -> None:
    sampler = EpisodeSampler(LABELS, ways=5, shots=1, queries=15)
    benchmark.group = "sampler, 1 episode"
    benchmark(lambda: sampler.sample(1, generator(0, "benchmark")))


def test_augmentation_of_one_episode(benchmark: BenchmarkFixture) -> None:
    images = torch.randint(0, 256, (80, 3, 84, 84), dtype=torch.uint8, generator=generator(0, "benchmark"))
    augmentation = Augmentation()
    drawn = augmentation.draw(80, generator(0, "augmentation"))
    benchmark.group = "augmentation, 80 images of 84 px"
    benchmark(augmentation.apply, images, drawn)
