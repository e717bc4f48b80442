"""A folder of one's own images: one folder per class, images of any size and kind inside it."""

from __future__ import annotations

import os
from pathlib import Path

from team.data.source import DataError, DataSet, Picture, Reading

ENDINGS = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm"}


def read(folder: Path, dataset: DataSet, part: str, classes: tuple[str, ...] | None) -> Reading:
    """Classes and images in sorted order; hidden files and files that are not images by name are left aside."""
    names = classes
    if names is None:
        names = tuple(sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and entry.name[0] != "."))
    pictures = {}
    for name in names:
        files = sorted((folder / name).rglob("*")) if (folder / name).is_dir() else []
        files = [file for file in files if file.suffix.lower() in ENDINGS and not file.name.startswith(".")]
        pictures[name] = [Picture(file.relative_to(folder).as_posix(), file) for file in files]
    if not pictures:
        raise DataError(f"{folder} has no folders in it. {dataset.by_hand}")
    dataset.check_classes(pictures, names, folder)
    return Reading(pictures, ())


FOLDER = DataSet(
    name="folder",
    title="a folder of images",
    read=read,
    folder="",
    marks=(),
    by_hand="Give as root a folder with one folder per class and that class's images (jpg, png, webp, gif, bmp, tiff, "
    "ppm) in it",
    default_split="0.64-0.16-0.2@0",
)
