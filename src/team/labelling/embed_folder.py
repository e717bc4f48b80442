"""From a folder of images to features: every file decoded, embedded once, and remembered by its content."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from team.data.parallel import parallel
from team.data.progress import bar
from team.files import cache_folder
from team.labelling.embedders import Embedder, find_embedder
from team.labelling.feature_cache import FeatureCache
from team.labelling.images import BadImage, decode, find_images, read_file
from team.labelling.runtime import Run, fast

_BATCH = 8  # pictures per run of the network: more of them gain nothing on a CPU
_SAVE_EVERY = 512  # an interrupted run loses no more than this many features


@dataclass(frozen=True, eq=False)
class FolderFeatures:
    """What a folder's images look like to a network.

    paths: relative to the folder, with forward slashes, sorted; features: float32 ``[n, d]``, one row per path
    skipped: (path, reason) of every file that could not be read as an image
    """

    paths: list[str]
    features: NDArray[np.float32]
    skipped: list[tuple[str, str]]


def embed_folder(folder: Path, *, embedder: Any = None, progress: bool = True) -> FolderFeatures:
    """Features of all images below ``folder``; files are read, never written.

    embedder: None for EfficientNet-Lite0 in bytes, "efficientnet-lite0-float32" for it in floats, or anything
        :func:`team.labelling.embedders.find_embedder` takes
    progress: show a bar with rate and time left, if a person watches (stderr is a terminal)

    Features are kept in the cache by file content: a run that was interrupted goes on, and only files that are new or
    were changed are embedded.
    """
    folder = Path(folder)
    paths, skipped = find_images(folder)
    network = find_embedder(embedder)
    cache = FeatureCache(cache_folder() / "features" / network.key, network.dim)
    with warnings.catch_warnings(), bar("embedding", len(paths), None if progress else False) as advance:
        warnings.filterwarnings("ignore", module="PIL")  # what matters is reported per file
        good, digests = [], []
        try:
            for path, answer in zip(paths, _embed(folder, paths, network, cache), strict=True):
                if isinstance(answer, BadImage):
                    skipped.append((path, str(answer)))
                else:
                    good.append(path)
                    digests.append(answer)
                advance(1)
        finally:
            cache.save()
    features = np.empty((len(good), network.dim), np.float32)
    for row, digest in enumerate(digests):
        features[row] = cache[digest]
    return FolderFeatures(good, features, sorted(skipped))


def _embed(folder: Path, paths: list[str], network: Embedder, cache: FeatureCache) -> Iterator[bytes | BadImage]:
    """The digest of each file, by which its features are then in the cache; or what is wrong with the file.

    Every core takes a batch of files and does all there is to do with it, from reading to the network.
    """
    runs: list[Run] = []
    lock = Lock()

    def run(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        with lock:  # not made before it is needed: what is in the cache is ready at once
            runs[:] = runs or [fast(network, len(paths))]
        return runs[0](pixels)

    def embed(batch: list[str]) -> list[bytes | BadImage]:
        answers: list[bytes | BadImage] = []
        pictures: dict[bytes, NDArray[np.uint8]] = {}
        for path in batch:
            try:
                content, digest = read_file(folder / path)
                if digest not in cache and digest not in pictures:
                    pictures[digest] = decode(content, network.size)
                answers.append(digest)
            except BadImage as error:
                answers.append(error)
        if pictures:
            cache.add(pictures, run(np.stack(list(pictures.values()))))
        return answers

    batches = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
    for answers in parallel(embed, batches, chunk=1):
        if cache.unsaved >= _SAVE_EVERY:
            cache.save()
        yield from answers
