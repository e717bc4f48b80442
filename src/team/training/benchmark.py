"""How fast episodes are trained on: this package's step beside the plain loop, in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from team.data.augment import Augmentation
from team.data.images import ImageSet
from team.episode import Episode
from team.model import Model
from team.seeding import generator
from team.training.average import WeightAverage
from team.training.episodic import EpisodicTraining
from team.training.settings import EpisodicSettings
from team.training.step import Step


@dataclass(frozen=True)
class TrainingRate:
    """name: which loop; per_step: episodes per optimiser step; rate: episodes per second."""

    name: str
    per_step: int
    rate: float


def bench_training(
    *,
    device: str = "cpu",
    backbone: str = "conv4",
    size: int = 84,
    shots: int = 1,
    per_step: tuple[int, ...] = (4, 16),
    compile: tuple[bool, ...] = (False,),
    seconds: float = 5.0,
    workers: int = 2,
) -> list[TrainingRate]:
    """Episodes per second of TEAM training on random images: the plain loop first, then ours at each setting."""
    random = generator(0, "benchmark")
    classes, each = 20, 40
    images = torch.randint(0, 256, (classes * each, 3, size, size), dtype=torch.uint8, generator=random)
    labels = torch.arange(classes).repeat_interleave(each)
    data = ImageSet(images, labels, tuple(map(str, range(classes))), "random images", "benchmark")
    rates = [TrainingRate("plain loop", 1, _plain_loop(data, device, backbone, shots, seconds, workers))]
    for compiled in compile:
        for episodes in per_step:
            name = "team" + (" (graph)" if device != "cpu" else "") + (" (compiled)" if compiled else "")
            rate = _our_loop(data, device, backbone, shots, episodes, compiled, seconds)
            rates.append(TrainingRate(name, episodes, rate))
    return rates


def _model(data: ImageSet, device: str, backbone: str) -> Model:
    torch.manual_seed(0)
    model = Model.create(backbone, "team", data.images.shape[-1], method_options={"learn_temperature": True})
    model.network.to(device)
    model.method.to(device)
    return model


def _our_loop(
    data: ImageSet, device: str, backbone: str, shots: int, per_step: int, compiled: bool, seconds: float
) -> float:
    settings = EpisodicSettings(shots=shots, per_step=per_step)
    objective = EpisodicTraining(_model(data, device, backbone), data, data, settings, compile=compiled)
    optimiser = objective.optimiser()
    average = WeightAverage(objective.module, 0.99)
    step = Step(objective.loss, optimiser, average, torch.device(device), graph=True)

    def run(number: int) -> None:
        average.prepare(number)
        step(objective.draw(number), 1e-3)

    return per_step * _steps_per_second(run, device, seconds)


class _Episodes(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Episodes as a data loader gives them: images gathered and augmented on the CPU, one episode an item."""

    def __init__(self, objective: EpisodicTraining, data: ImageSet) -> None:
        self.images, self.draw, self.augmentation = data.images, objective.draw, Augmentation()

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, number: int) -> torch.Tensor:  # type: ignore[override]
        drawn = self.draw(number)
        return self.augmentation.apply(self.images[drawn["index"][0]], drawn["augmentation"])


def _plain_loop(data: ImageSet, device: str, backbone: str, shots: int, seconds: float, workers: int) -> float:
    """One episode at a time, float32, a data loader: the paper implemented without further thought."""
    model = _model(data, "cpu", backbone)
    loader_objective = EpisodicTraining(model, data, data, EpisodicSettings(shots=shots))
    loader = DataLoader(
        _Episodes(loader_objective, data), batch_size=None, num_workers=workers, pin_memory=device != "cpu"
    )
    network, method = model.network.to(device).train(), model.method.to(device)
    optimiser = torch.optim.Adam([*network.parameters(), *method.parameters()], lr=1e-3)
    support = torch.arange(5, device=device).repeat_interleave(shots)[None]
    answers = torch.arange(5, device=device).repeat_interleave(15)
    batches = iter(loader)

    def run(number: int) -> None:
        features = network(next(batches).to(device))[None]
        episode = Episode(features[:, : 5 * shots], support, features[:, 5 * shots :], 5)
        loss = F.nll_loss(method.log_probabilities(episode)[0], answers)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        loss.item()

    return _steps_per_second(run, device, seconds)


def _steps_per_second(run: Callable[[int], None], device: str, seconds: float) -> float:
    """Warm up, then count steps for about this long; the device has finished when the clock is read."""
    for number in range(6):
        run(number)
    _wait(device)
    started, steps = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        for _ in range(4):
            run(steps)
            steps += 1
        _wait(device)
    return steps / (time.perf_counter() - started)


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()
