"""From a folder of images to features: every file decoded, embedded once, and remembered by its content."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
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

_BATCH = 16  # pictures per run of the network: more of them gain nothing on a CPU
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

    embedder: None for EfficientNet-Lite0, or anything :func:`team.labelling.embedders.find_embedder` takes
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
    """The digest of each file, by which its features are then in the cache; or what is wrong with the file."""

    def read(path: str) -> tuple[bytes, NDArray[np.uint8] | None] | BadImage:
        try:
            content, digest = read_file(folder / path)
            return digest, None if digest in cache else decode(content, network.size)
        except BadImage as error:
            return error

    run: Run | None = None
    waiting: list[bytes | BadImage] = []
    pictures: dict[bytes, NDArray[np.uint8]] = {}
    for found in parallel(read, paths):
        if isinstance(found, BadImage):
            waiting.append(found)
        else:
            digest, pixels = found
            waiting.append(digest)
            if pixels is not None and digest not in cache:
                pictures[digest] = pixels
        if len(pictures) >= _BATCH:
            run = run or fast(network, len(paths))  # not before it is needed: what is in the cache is ready at once
            _remember(pictures, run, cache)
        if not pictures:
            yield from waiting
            waiting = []
    if pictures:
        _remember(pictures, run or fast(network, len(paths)), cache)
    yield from waiting


def _remember(pictures: dict[bytes, NDArray[np.uint8]], run: Run, cache: FeatureCache) -> None:
    """Embed ``pictures``, put their features into the cache, and leave ``pictures`` empty."""
    features = run(np.stack(list(pictures.values())))
    for digest, row in zip(pictures, features, strict=True):
        cache.add(digest, row)
    pictures.clear()
    if cache.unsaved >= _SAVE_EVERY:
        cache.save()
