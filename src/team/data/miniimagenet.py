"""miniImageNet (Vinyals et al., 2016), in the split of Ravi & Larochelle (2017): 100 classes of 600 images.

Three forms of it are in circulation, and each is read as it is:

- ``images/`` with ``train.csv``, ``val.csv``, ``test.csv`` (``filename,label`` lines; images of any size)
- ``mini-imagenet-cache-{train,val,test}.pkl``: "image_data" uint8 ``[n, 84, 84, 3]`` and "class_dict", from a class to
  the positions of its images
- ``miniImageNet_category_split_{train_phase_train,val,test}.pickle``: "data" uint8 ``[n, 84, 84, 3]``, "labels"
  ``[n]`` and "catname2label", from a class to its label
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from team.data.pickles import read_pickle
from team.data.source import DataError, DataSet, Picture, Reading, require


def _from_csv(folder: Path, dataset: DataSet, file: Path) -> dict[str, list[Picture]]:
    pictures: dict[str, list[Picture]] = {}
    with open(file, newline="", encoding="utf-8", errors="replace") as lines:
        rows = csv.DictReader(lines)
        if rows.fieldnames is None or not {"filename", "label"} <= set(rows.fieldnames):
            raise DataError(f"{file} should begin with the line 'filename,label', not {rows.fieldnames}")
        for row in rows:
            path = require(folder / "images" / row["filename"], dataset)
            pictures.setdefault(row["label"], []).append(Picture(f"images/{row['filename']}", path))
    return pictures


def _from_arrays(file: Path, pixels: Any, positions: dict[str, list[int]]) -> dict[str, list[Picture]]:
    if isinstance(pixels, list):
        pixels = np.stack(pixels) if pixels else None
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[3] != 3:
        raise DataError(f"{file} should hold images as uint8 [n, height, width, 3]: get another copy")
    if any(not 0 <= position < len(pixels) for listed in positions.values() for position in listed):
        raise DataError(f"{file} names images beyond the {len(pixels)} it holds: get another copy")
    return {
        name: [Picture(f"{file.name}[{position}]", pixels[position]) for position in listed]
        for name, listed in positions.items()
    }


def _from_class_dict(folder: Path, dataset: DataSet, file: Path) -> dict[str, list[Picture]]:
    content = read_pickle(file)
    if not isinstance(content.get("class_dict"), dict):
        raise DataError(f"{file} has no 'class_dict' from class names to positions: get another copy")
    return _from_arrays(file, content.get("image_data"), content["class_dict"])


def _from_labels(folder: Path, dataset: DataSet, file: Path) -> dict[str, list[Picture]]:
    content = read_pickle(file)
    names, labels = content.get("catname2label"), content.get("labels")
    if not isinstance(names, dict) or labels is None:
        raise DataError(f"{file} needs 'labels' and 'catname2label', without which its classes have no names")
    positions: dict[int, list[int]] = {}
    for position, label in enumerate(labels):
        positions.setdefault(int(label), []).append(position)
    by_name = {name: positions.get(int(label), []) for name, label in names.items()}
    return _from_arrays(file, content.get("data"), by_name)


_FORMS: tuple[tuple[str, dict[str, str], Callable[[Path, DataSet, Path], dict[str, list[Picture]]]], ...] = (
    ("{}.csv", {}, _from_csv),
    ("mini-imagenet-cache-{}.pkl", {}, _from_class_dict),
    ("miniImageNet_category_split_{}.pickle", {"train": "train_phase_train"}, _from_labels),
)


def read(folder: Path, dataset: DataSet, part: str, classes: tuple[str, ...] | None) -> Reading:
    """Only the files of ``part`` are opened, so a copy without the test classes can be trained on."""
    for pattern, spelling, reader in _FORMS:
        file = folder / pattern.format(spelling.get(part, part))
        if file.is_file():
            pictures = reader(folder, dataset, file)
            wanted = tuple(sorted(pictures)) if classes is None else classes
            dataset.check_classes(pictures, wanted, file)
            return Reading({name: pictures[name] for name in wanted}, (file,))
    raise DataError(f"{folder} has no file of the {part} classes of {dataset.title}. {dataset.by_hand}")


MINIIMAGENET = DataSet(
    name="miniimagenet",
    title="miniImageNet",
    read=read,
    folder="miniImageNet",
    marks=tuple(
        pattern.format(spelling.get(part, part)) for pattern, spelling, _ in _FORMS for part in ("train", "val", "test")
    ),
    by_hand="miniImageNet is cut from ImageNet, whose licence lets nobody hand it on: there is no official download. "
    "Get ImageNet (ILSVRC 2012) at https://image-net.org and the lists train.csv, val.csv and test.csv from "
    "https://github.com/twitter-research/meta-learning-lstm, and put the lists, beside a folder images/ with the files "
    "they name, into the folder given as root; or put there mini-imagenet-cache-{train,val,test}.pkl or "
    "miniImageNet_category_split_{train_phase_train,val,test}.pickle, if you have them",
    images=60_000,
    per_class=600,
    default_split="ravi",
)
