"""The episodes that both sides are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from team.data import load
from team.data.sampler import EpisodeSampler
from team.evaluation.embed import embed
from team.evaluation.evaluate import draw_batches
from team.model import load_model
from team.weights import weights_path

WAYS, QUERIES = 5, 15
DATA_SETS = ("miniimagenet", "cub")


@dataclass(frozen=True, eq=False)
class Tasks:
    """Episodes, classes in order: support ``[E, S, d]``, labels ``[E, S]``, query ``[E, Q, d]``, centre ``[d]``."""

    support: Tensor
    labels: Tensor
    query: Tensor
    truth: Tensor
    centre: Tensor
    shots: int

    def __len__(self) -> int:
        return len(self.support)

    def first(self, count: int) -> Tasks:
        parts = (part[:count] for part in (self.support, self.labels, self.query, self.truth))
        return Tasks(*parts, self.centre, self.shots)

    def one_by_one(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        return zip(self.support, self.labels, self.query, strict=True)

    def shots_first(self) -> Tensor:
        """Support with one sample of every class, then the next of every class, as some of the peers want it."""
        return self.support.unflatten(1, (WAYS, self.shots)).transpose(1, 2).flatten(1, 2)


Solver = Callable[[Tasks], Tensor]
"""From tasks to predicted classes ``[E, Q]``."""

Loader = Callable[[Path], Solver]
"""From the folder with a peer's code to its solver."""


def draw_tasks(folder: Path, dataset: str, shots: int, episodes: int, seed: int) -> Tasks:
    """Episodes of validation classes, embedded by the shipped weights of the ProtoNet baseline.

    Features are kept in ``folder/features``. They are divided by the root of the temperature that was learned with
    them, so that a softmax over negative squared distances is as sharp as in training. The centre is their mean,
    standing in for that of training images.
    """
    model = load_model(weights_path(f"{dataset}-conv4-{shots}shot-baseline"))
    kept = folder / "features" / f"{dataset}-{shots}.safetensors"
    if not kept.exists():
        images = load(dataset, "val", size=model.size)
        kept.parent.mkdir(exist_ok=True)
        save_file({"features": embed(model.network, images.images, size=model.size), "labels": images.labels}, kept)
    tensors = load_file(kept)
    features = tensors["features"] / model.method.temperature.detach().sqrt()
    sampler = EpisodeSampler(tensors["labels"], ways=WAYS, shots=shots, queries=QUERIES)
    drawn = list(draw_batches(sampler, episodes, 256, seed))
    support, labels, query, truth = (
        torch.cat([getattr(batch, name) for batch in drawn])
        for name in ("support", "support_labels", "query", "query_labels")
    )
    return Tasks(features[support], labels, features[query], truth, features.mean(0), shots)
