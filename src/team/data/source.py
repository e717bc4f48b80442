"""Where a data set's files are, what they hold before any pixel is decoded, and the one error for all that is wrong."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from team.files import writing


class DataError(ValueError):
    """Something is wrong with a data set's files; the message names the file and says what to do."""


@dataclass(frozen=True)
class Picture:
    """One image that has not been decoded yet.

    name: for messages, relative to the data set's folder
    content: an image file, or its pixels, uint8 ``[H, W, 3]``
    box: the object's bounding box as left, top, width, height in pixels, where the data set has one
    """

    name: str
    content: Path | NDArray[np.uint8]
    box: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class Reading:
    """The pictures of some classes, and the files whose content (not only name and size) decides what they are."""

    pictures: Mapping[str, list[Picture]]
    decisive: tuple[Path, ...]

    def checksum(self) -> str:
        """sha256 over the bytes of the decisive files and over the class, name and size of every image file.

        The bytes of the image files themselves are not read: this is to notice a changed source in a second, the
        pixels are guarded by the checksums of the shards.
        """
        digest = hashlib.sha256()
        for path in self.decisive:
            digest.update(f"{path.name}\0{file_digest(path)}\n".encode())
        for name, pictures in self.pictures.items():
            for picture in pictures:
                size = picture.content.stat().st_size if isinstance(picture.content, Path) else 0
                digest.update(f"{name}\0{picture.name}\0{size}\n".encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class DataSet:
    """What is known about a data set without having its files.

    read: ``(folder, dataset, part, classes) -> Reading`` of those classes (None: every class there is), with every
        count already checked
    folder, archive: what the official download is called; marks: file names by which its folder is recognised
    images, per_class: how many images there are in all, and in each class where that is the same for all
    boxes: whether the images come with bounding boxes to crop to
    """

    name: str
    title: str
    read: Callable[[Path, DataSet, str, tuple[str, ...] | None], Reading]
    folder: str
    marks: tuple[str, ...]
    by_hand: str
    archive: str | None = None
    images: int | None = None
    per_class: int | None = None
    boxes: bool = False
    default_split: str = ""
    url: str | None = None
    md5: str | None = None

    def check_classes(self, pictures: Mapping[str, list[Picture]], wanted: tuple[str, ...], place: Path) -> None:
        """Every wanted class is there, with as many images as it should have."""
        if missing := [name for name in wanted if not pictures.get(name)]:
            raise DataError(
                f"{place} has no images of {len(missing)} of the {len(wanted)} classes asked for, {missing[0]!r} say: "
                f"this is not the whole of {self.title}, or the split is for another data set"
            )
        for name in wanted:
            if self.per_class is not None and len(pictures[name]) != self.per_class:
                raise DataError(
                    f"{place} has {len(pictures[name])} images of class {name!r} where {self.title} has "
                    f"{self.per_class}: the copy is incomplete or altered, get it again. {self.by_hand}"
                )

    def check_total(self, found: int, file: Path) -> None:
        if self.images is not None and found != self.images:
            raise DataError(
                f"{file} lists {found} images where {self.title} has {self.images}: the copy is incomplete or altered, "
                f"get it again. {self.by_hand}"
            )


def locate(root: Path, dataset: DataSet) -> Path:
    """The data set's folder or archive: ``root`` itself, or inside ``root`` under its official name."""
    if root.is_file() and dataset.archive:
        return root
    for folder in (root, root / dataset.folder):
        if folder.is_dir() and (not dataset.marks or any((folder / mark).exists() for mark in dataset.marks)):
            return folder
    if dataset.archive and (root / dataset.archive).is_file():
        return root / dataset.archive
    missing = "" if root.exists() else ", which does not exist"
    raise DataError(f"found no {dataset.title} at {root}{missing}. {dataset.by_hand}")


def require(path: Path, dataset: DataSet) -> Path:
    """``path``, if it is a file."""
    if not path.is_file():
        raise DataError(f"{path} is missing from this copy of {dataset.title}: get it again. {dataset.by_hand}")
    return path


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def unpacked(archive: Path, dataset: DataSet, workspace: Path) -> Iterator[Path]:
    """Unpack ``archive`` for as long as the context lasts, and give the data set's folder.

    Only plain files below the official folder are written; links, devices and paths that leave it never are.
    """
    with writing(workspace):
        workspace.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=workspace) as temporary:
        try:
            with tarfile.open(archive, "r|*") as tar:
                for member in tar:
                    path = PurePosixPath(member.name)
                    if path.is_absolute() or ".." in path.parts:
                        raise DataError(
                            f"{archive} holds the path {member.name!r}, which leaves the folder it is unpacked to: "
                            f"this is not the official archive. {dataset.by_hand}"
                        )
                    if not member.isreg() or dataset.folder not in path.parts[:-1]:
                        continue
                    target = Path(temporary, *path.parts)
                    content = tar.extractfile(member)
                    assert content is not None  # a regular file always has content
                    unpacked_bytes = content.read()  # outside of what follows: a damaged archive is no full disk
                    with writing(workspace):
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_bytes(unpacked_bytes)
        except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"{archive} is cut short or damaged ({error}): download it again. {dataset.by_hand}"
            ) from error
        yield locate(Path(temporary), dataset)
