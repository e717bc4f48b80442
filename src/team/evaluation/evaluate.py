"""Accuracy of a method over many episodes, with its 95 % confidence interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from team.data.sampler import EpisodeIndices, EpisodeSampler
from team.episode import Episode, check_features
from team.methods.base import Method
from team.methods.network import NetworkMethod
from team.seeding import generator

_BATCH_BYTES = 1 << 27


@dataclass(frozen=True, eq=False)
class Evaluation:
    """accuracies: per cent of right queries in each episode ``[E]``; mean of them; ci95: half of the 95 % interval."""

    accuracies: Tensor
    ways: int
    shots: int
    queries: int
    seed: int
    sampling: str

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
) -> Evaluation:
    """Accuracy of ``method`` on episodes drawn from ``features``, ``{class: [n, d]}``.

    queries: per class; seed decides the episodes, so that two methods given the same one see the same episodes.
    Episodes are solved in batches on the device the features are on.
    """
    if sampling != "balanced":
        raise ValueError(f"no sampling is called {sampling!r}; there is 'balanced'")
    if not features:
        raise ValueError("features is empty; it must map each class to its features [n, d]")
    for name, values in features.items():
        check_features(f"features[{name!r}]", values, dims=(2,))
    if len(dims := {values.shape[1] for values in features.values()}) > 1:
        raise ValueError(f"all classes must have features of one width, not {sorted(dims)}")
    table = torch.cat(list(features.values()))
    labels = torch.arange(len(features)).repeat_interleave(torch.tensor([len(v) for v in features.values()]))
    sampler = EpisodeSampler(labels, ways=ways, shots=shots, queries=queries)
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
    network: nn.Module | None = None,
) -> Evaluation:
    """Evaluate with features from ``embed``, which turns drawn episodes into support and query ``[B, n, d]``.

    network: given to a method that fits it to each episode; ``embed`` then gives images ``[B, n, 3, H, W]``.
    Nothing is read back from the device before the last episode has been sent to it.
    """
    if episodes < 1:
        raise ValueError(f"episodes must be 1 or more, not {episodes}")
    method = method.to(device)
    results = []
    for number, drawn in enumerate(draw_batches(sampler, episodes, batch, seed)):
        support, query = embed(drawn)
        episode = Episode(support, drawn.support_labels.to(device), query, sampler.ways)
        if network is not None and isinstance(method, NetworkMethod):
            scores = method.adapted(network, episode)
        else:
            if number == 0:
                method.check(episode)
            scores = method.log_probabilities(episode)
        predicted = scores.argmax(-1)
        results.append((predicted == drawn.query_labels.to(device)).double().mean(-1))
    accuracies = 100 * torch.cat(results).cpu()
    return Evaluation(accuracies, sampler.ways, sampler.shots, sampler.queries, seed, "balanced")


def draw_batches(sampler: EpisodeSampler, episodes: int, batch: int, seed: int) -> Iterator[EpisodeIndices]:
    """The episodes of a seed, in batches: the same ones for every batch size."""
    block = 256
    for start in range(0, episodes, block):
        drawn = sampler.sample(min(block, episodes - start), generator(seed, "evaluation", start))
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
