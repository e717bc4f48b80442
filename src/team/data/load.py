"""From the cache to images in memory. Needs no source files, and nothing beyond torch, numpy, pillow, safetensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from team.data.cache import read_shard
from team.data.folder import FOLDER
from team.data.images import ImageSet
from team.data.parallel import parallel
from team.data.pixels import decode
from team.data.prepare import prepare_requests
from team.data.request import Request
from team.data.source import DataError
from team.data.splits import SplitChoice


def load(
    name: str,
    part: str,
    *,
    root: str | Path | None = None,
    split: SplitChoice = None,
    size: int = 84,
    crop: bool = True,
    encoding: str = "exact",
    cache: str | Path | None = None,
    progress: bool | None = None,
) -> ImageSet:
    """The images of one part of a data set, from the cache; the files of no other part are touched.

    The arguments are those of :func:`team.data.prepare`. With ``root``, a cache that is missing, broken or made from
    another source is prepared first. For the data set "folder", root is that folder, and says which cache is meant even
    on a machine that has only the cache.
    """
    request = Request.checked(name, part, root, split, size, crop, encoding, cache)
    if root is not None and (name != FOLDER.name or Path(root).expanduser().exists()):
        prepare_requests([request], Path(root).expanduser(), progress)
    index = request.index()
    if index is None:
        raise DataError(
            f"{name} is not prepared in {request.cache / request.settings.key}: run {request.settings.command}, "
            f"where DIR holds its files. {request.dataset.by_hand}"
        )
    images = np.empty((index.images, 3, size, size), np.uint8)
    labels = np.empty(index.images, np.int64)
    start = 0
    for shard in index.shards:
        tensors = read_shard(request.cache, index, shard)
        end = start + shard.images
        labels[start:end] = tensors["labels"]
        _decode_into(images[start:end], tensors["bytes"], tensors["offsets"])
        start = end
    title = f"{name} {part} ({index.settings.key})"
    return ImageSet(torch.from_numpy(images), torch.from_numpy(labels), index.classes, title, index.checksum)


def _decode_into(images: np.ndarray, content: np.ndarray, offsets: np.ndarray) -> None:
    """Decode the files that lie end to end in ``content`` into ``images`` ``[n, 3, size, size]``."""
    files, bounds, size = content.data, offsets.tolist(), images.shape[-1]

    def work(position: int) -> None:
        images[position] = decode(files[bounds[position] : bounds[position + 1]], size)

    for _ in parallel(work, range(len(images))):
        pass
