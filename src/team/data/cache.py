"""The prepared form of a data set: shards of encoded images and one index, found without the source.

    <cache>/<data set>-<split>-<size>[-crop]-<encoding>/<part>.json           the index
                                                         <part>-<source>-000.safetensors, -001, ...

A shard holds the files of its images end to end, "bytes" uint8 [total], "offsets" int64 [n + 1] and "labels" int64
[n]. The index is written last and names its shards, so a reader never sees half of a preparation; shards carry the
source's checksum in their name, so a new preparation never overwrites those a reader has open.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from team.data.source import DataError
from team.files import atomic_path, write_json

SHARD_BYTES = 48 * 2**20  # of a whole shard file
_FORMAT = 1


@dataclass(frozen=True)
class Settings:
    """All that decides the content of a prepared part, apart from its source."""

    dataset: str
    split: str
    part: str
    size: int
    crop: bool
    encoding: str

    @property
    def key(self) -> str:
        return f"{self.dataset}-{self.split}-{self.size}{'-crop' if self.crop else ''}-{self.encoding}"

    @property
    def command(self) -> str:
        """What prepares this part, for messages."""
        name = self.dataset.split("-")[0]
        split = "FILE.json" if self.split.startswith("own-") else self.split
        crop = " --no-crop" if name == "cub" and not self.crop else ""
        return (
            f"team data prepare {name} --root DIR --split {split} --size {self.size}{crop} "
            f"--encoding {self.encoding} --parts {self.part}"
        )


@dataclass(frozen=True)
class Shard:
    file: str
    sha256: str
    images: int
    bytes: int


@dataclass(frozen=True)
class Index:
    """What a prepared part holds. ``source``: checksum of the files it was made from; ``counts``: images per class."""

    settings: Settings
    source: str
    classes: tuple[str, ...]
    counts: tuple[int, ...]
    shards: tuple[Shard, ...]

    @property
    def images(self) -> int:
        return sum(self.counts)

    @property
    def checksum(self) -> str:
        """Of the settings, the classes and every byte of the shards."""
        content = [asdict(self.settings), self.classes, [shard.sha256 for shard in self.shards]]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def index_path(cache: Path, settings: Settings) -> Path:
    return cache / settings.key / f"{settings.part}.json"


def read_index(cache: Path, settings: Settings) -> Index | None:
    """The index for these settings; None where there is none. DataError where there is one that cannot be used."""
    path = index_path(cache, settings)
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if value["format"] != _FORMAT or Settings(**value["settings"]) != settings:
            raise ValueError("it was written for other settings, or by another version of this program")
        shards = tuple(Shard(**shard) for shard in value["shards"])
        return Index(settings, value["source"], tuple(value["classes"]), tuple(value["counts"]), shards)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"the index {path} cannot be used ({error}); make it anew: {settings.command}") from error


def read_shard(cache: Path, index: Index, shard: Shard) -> dict[str, NDArray[Any]]:
    """The tensors of one shard, after its size and checksum were found right."""
    path = cache / index.settings.key / shard.file
    repair = f"make it anew: {index.settings.command}"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"the shard {path} cannot be read ({error.strerror}); {repair}") from error
    if hashlib.sha256(content).hexdigest() != shard.sha256:
        raise DataError(f"the shard {path} is cut short or damaged ({len(content)} of {shard.bytes} bytes); {repair}")
    try:
        tensors: dict[str, NDArray[Any]] = load_tensors(content)
    except SafetensorError as error:
        raise DataError(f"the shard {path} is no safetensors file ({error}); {repair}") from error
    return tensors


class ShardWriter:
    """Collects encoded images, and writes a shard each time the next image would make it too large."""

    def __init__(self, cache: Path, settings: Settings, source: str) -> None:
        self.folder, self.settings, self.source = cache / settings.key, settings, source
        self.shards: list[Shard] = []
        self._start()

    def _start(self) -> None:
        self._images: list[bytes] = []
        self._labels: list[int] = []
        self._bytes = 1024  # for the header

    def add(self, image: bytes, label: int) -> None:
        if self._bytes + len(image) + 16 > SHARD_BYTES and self._images:
            self._write()
        self._images.append(image)
        self._labels.append(label)
        self._bytes += len(image) + 16  # an offset and a label

    def _write(self) -> None:
        offsets = np.cumsum([0, *map(len, self._images)], dtype=np.int64)
        content = save_tensors(
            {
                "bytes": np.frombuffer(b"".join(self._images), np.uint8),
                "offsets": offsets,
                "labels": np.array(self._labels, np.int64),
            }
        )
        name = f"{self.settings.part}-{self.source[:8]}-{len(self.shards):03d}.safetensors"
        with atomic_path(self.folder / name) as temporary:
            temporary.write_bytes(content)
        self.shards.append(Shard(name, hashlib.sha256(content).hexdigest(), len(self._images), len(content)))
        self._start()

    def finish(self, classes: Iterable[str], counts: Iterable[int]) -> Index:
        """Write the last shard and the index, then remove what an earlier preparation of this part left."""
        if self._images:
            self._write()
        index = Index(self.settings, self.source, tuple(classes), tuple(counts), tuple(self.shards))
        write_json(index_path(self.folder.parent, self.settings), {"format": _FORMAT, **asdict(index)})
        kept = {shard.file for shard in index.shards}
        for old in self.folder.glob(f"{self.settings.part}-*.safetensors"):
            if old.name not in kept:
                old.unlink(missing_ok=True)
        return index
