"""How long a training step takes, and how many episodes a second that makes beside the plain loop."""

from __future__ import annotations

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from team.data.images import ImageSet
from team.model import Model
from team.training.average import WeightAverage
from team.training.benchmark import bench_training
from team.training.episodic import EpisodicTraining
from team.training.settings import EpisodicSettings
from team.training.step import Step


@pytest.mark.parametrize("method", ["protonet", "team"])
def test_one_step_on_one_episode(benchmark: BenchmarkFixture, method: str) -> None:
    random = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (200, 3, 84, 84), dtype=torch.uint8, generator=random)
    labels = torch.arange(10).repeat_interleave(20)
    data = ImageSet(images, labels, tuple("0123456789"), "random images", "benchmark")
    objective = EpisodicTraining(Model.create("conv4", method, 84), data, data, EpisodicSettings(shots=1, per_step=1))
    average = WeightAverage(objective.module, 0.99)
    step = Step(objective.loss, objective.optimiser(), average, torch.device("cpu"), graph=False)
    objective.module.train()
    numbers = iter(range(1_000_000))

    def take() -> None:
        number = next(numbers)
        average.prepare(number)
        step(objective.draw(number), 1e-3)

    benchmark.group = "training step, conv4, 84 px, 1-shot, 1 episode"
    benchmark.pedantic(take, rounds=5, warmup_rounds=1)


def test_the_plain_loop_and_ours(benchmark: BenchmarkFixture) -> None:
    benchmark.group = "benchmark of training, 32 px"
    rates = benchmark.pedantic(
        lambda: bench_training(size=32, per_step=(1, 4), seconds=0.2, workers=0), rounds=1, warmup_rounds=0
    )
    assert [(rate.name, rate.per_step) for rate in rates] == [("plain loop", 1), ("team", 1), ("team", 4)]
    benchmark.extra_info["episodes per second"] = {f"{rate.name}, {rate.per_step}": rate.rate for rate in rates}
