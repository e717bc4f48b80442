"""Features of a data set by the network of a model file, kept in the cache under all that decides what they are.

    <cache>/features/<key>.safetensors      "features" float32 [n, d] and "labels" int64 [n]

The key is a checksum of the model file, the data set's own checksum, the settings and the code that embeds. Change any
of them and another file is meant, so what was made before is never taken for what is wanted now.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from team.data.images import ImageSet
from team.data.progress import bar
from team.evaluation.embed import Precision, embed, usual_precision
from team.files import cache_folder
from team.model import load_model
from team.provenance import file_checksum, source_checksum
from team.training.checkpoint import CheckpointError, load_checkpoint, save_checkpoint

_STEP = 512  # images between two steps of the bar, as many as a GPU embeds at a time


@dataclass(frozen=True, eq=False)
class Features:
    """values: float32 ``[n, d]``; labels: int64 ``[n]``, indices into classes"""

    values: Tensor
    labels: Tensor
    classes: tuple[str, ...]

    def by_class(self) -> dict[str, Tensor]:
        """``{class: [n_c, d]}``, as :func:`team.evaluate` takes them."""
        return {name: self.values[self.labels == index] for index, name in enumerate(self.classes)}

    def mean(self) -> Tensor:
        """The mean of the classes' means ``[d]``."""
        return torch.stack([values.mean(0) for values in self.by_class().values()]).mean(0)


def cached_features(
    weights: Path,
    data: str,
    images: Callable[[], ImageSet],
    *,
    each: int | None = None,
    device: str = "cpu",
    precision: Precision | None = None,
    cache: Path | None = None,
) -> Features:
    """Features of an image set by the model in this file, with running statistics.

    data: the image set's checksum; ``images`` is called only if the features are not in the cache
    each: only so many images of every class, its first ones; None for all of them
    precision: as :func:`embed` takes it
    cache: the folder, ``$TEAM_CACHE/features`` by default
    """
    key = {
        "weights": file_checksum(weights),
        "data": data,
        "each": each,
        "statistics": "running",
        "device": torch.device(device).type,
        "precision": precision or usual_precision(device),
        "format": 1,
        "code": [source_checksum("team.backbones"), source_checksum("team.data.augment")],
    }
    path = (cache or cache_folder() / "features") / f"{checksum(key)}.safetensors"
    try:
        tensors, info = load_checkpoint(path)
        if info["key"] == key:
            return Features(tensors["features"].to(device), tensors["labels"].to(device), tuple(info["classes"]))
    except CheckpointError:
        pass  # not there, or cut short: made below
    found = images()
    if found.checksum != data:
        raise ValueError(f"{found.name} has the checksum {found.checksum}, not {data}: it has changed meanwhile")
    chosen = torch.ones_like(found.labels, dtype=torch.bool) if each is None else _first(found, each)
    model = load_model(weights)
    network, values = model.network.to(device), list[Tensor]()
    with bar(f"features of {found.name}", int(chosen.sum()), None) as advance:
        for part in torch.split(found.images[chosen], _STEP):
            values.append(embed(network, part, size=model.size, precision=precision))
            advance(len(part))
    features = Features(torch.cat(values), found.labels[chosen].to(device), found.classes)
    info = {"key": key, "classes": found.classes, "name": found.name}
    save_checkpoint(path, {"features": features.values, "labels": features.labels}, info)
    return features


def checksum(key: dict[str, Any]) -> str:
    """Of a dictionary of JSON values, in any order."""
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()


def _first(images: ImageSet, each: int) -> Tensor:
    """Whether an image is among the first ``each`` of its class, ``[n]``."""
    members = images.labels[:, None] == torch.arange(len(images.classes), device=images.labels.device)
    place = (members.cumsum(0) * members).sum(1)
    return place <= each
