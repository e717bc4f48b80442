"""Accuracy of a method over many episodes, with its 95 % confidence interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from team.data.sampler import EpisodeIndices, EpisodeSampler
from team.data.sampling import Sampling
from team.episode import Episode, check_features
from team.evaluation.calibration import Calibration
from team.methods.base import Method
from team.seeding import generator

BLOCK = 256
"""Episodes of a seed are drawn in blocks of so many, so whole blocks are the same in evaluations of other lengths."""

_BATCH_BYTES = 1 << 27


@dataclass(frozen=True, eq=False)
class Evaluation:
    """accuracies: per cent of right queries in each episode ``[E]``; mean of them; ci95: half of the 95 % interval.

    calibration_error: over all queries of all episodes, in per cent (see :mod:`team.evaluation.calibration`)
    sampling, concentration, present: how queries were drawn (see :mod:`team.data.sampling`); the concentration is that
        of "dirichlet", None for others
    """

    accuracies: Tensor
    ways: int
    shots: int
    queries: int
    seed: int
    sampling: str
    calibration_error: float = float("nan")
    concentration: float | None = None
    present: int | None = None

    @property
    def mean(self) -> float:
        return float(self.accuracies.mean())

    @property
    def ci95(self) -> float:
        if len(self.accuracies) < 2:
            return float("nan")
        return 1.96 * float(self.accuracies.std()) / math.sqrt(len(self.accuracies))

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.ci95:.2f} %"


def evaluate(
    method: Method,
    features: Mapping[Any, Tensor],
    *,
    ways: int = 5,
    shots: int = 1,
    queries: int = 15,
    episodes: int = 1000,
    seed: int = 0,
    sampling: str = "balanced",
    concentration: float = 2.0,
    present: int | None = None,
) -> Evaluation:
    """Accuracy of ``method`` on episodes drawn from ``features``, ``{class: [n, d]}``.

    queries: per class, on average; an episode always has ways × queries of them
    seed: decides the episodes, so that two methods given the same one see the same episodes
    sampling: "balanced", "dirichlet" (of this concentration) or "uniform"; see :mod:`team.data.sampling`
    present: how many of an episode's classes have queries at all; None for all of them
    Episodes are solved in batches on the device the features are on.
    """
    drawing = Sampling(sampling, concentration, present)
    if not features:
        raise ValueError("features is empty; it must map each class to its features [n, d]")
    for name, values in features.items():
        check_features(f"features[{name!r}]", values, dims=(2,))
    if len(dims := {values.shape[1] for values in features.values()}) > 1:
        raise ValueError(f"all classes must have features of one width, not {sorted(dims)}")
    table = torch.cat(list(features.values()))
    labels = torch.arange(len(features)).repeat_interleave(torch.tensor([len(v) for v in features.values()]))
    sampler = EpisodeSampler(labels, ways=ways, shots=shots, queries=queries, sampling=drawing)
    batch = max(1, min(256, _BATCH_BYTES // (8 * ways * (shots + queries) * table.shape[1])))
    return run_episodes(
        method,
        lambda drawn: (table[drawn.support.to(table.device)], table[drawn.query.to(table.device)]),
        sampler,
        episodes=episodes,
        batch=batch,
        seed=seed,
        device=table.device,
    )


@torch.no_grad()
def run_episodes(
    method: Method,
    embed: Callable[[EpisodeIndices], tuple[Tensor, Tensor]],
    sampler: EpisodeSampler,
    *,
    episodes: int,
    batch: int,
    seed: int,
    device: torch.device,
) -> Evaluation:
    """Evaluate with features from ``embed``, which turns drawn episodes into support and query ``[B, n, d]``.

    Nothing is read back from the device before the last episode has been sent to it.
    """
    if episodes < 1:
        raise ValueError(f"episodes must be 1 or more, not {episodes}")
    method = method.to(device)
    results, calibration = [], Calibration(device)
    for number, drawn in enumerate(draw_batches(sampler, episodes, batch, seed)):
        support, query = embed(drawn)
        episode = Episode(support, drawn.support_labels.to(device), query, sampler.ways)
        if number == 0:
            method.check(episode)
        log_confidence, predicted = method.log_probabilities(episode).max(-1)
        right = predicted == drawn.query_labels.to(device)
        results.append(right.double().mean(-1))
        calibration.add(log_confidence.exp(), right)
    accuracies, sampling = 100 * torch.cat(results).cpu(), sampler.sampling
    error = calibration.error()
    if math.isnan(error):
        raise ValueError(f"{type(method).__name__} gave probabilities that are not numbers; its accuracy means nothing")
    return Evaluation(
        accuracies,
        sampler.ways,
        sampler.shots,
        sampler.queries,
        seed,
        sampling.name,
        error,
        sampling.concentration if sampling.name == "dirichlet" else None,
        sampling.present,
    )


def draw_batches(sampler: EpisodeSampler, episodes: int, batch: int, seed: int) -> Iterator[EpisodeIndices]:
    """The episodes of a seed, in batches: the same ones for every batch size."""
    for start in range(0, episodes, BLOCK):
        drawn = sampler.sample(min(BLOCK, episodes - start), generator(seed, "evaluation", start))
        size = len(drawn.classes)
        for first in range(0, size, batch):
            part = slice(first, first + batch)
            yield EpisodeIndices(
                drawn.support[part],
                drawn.query[part],
                drawn.support_labels[part],
                drawn.query_labels[part],
                drawn.classes[part],
            )
