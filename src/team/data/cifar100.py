"""CIFAR-100 (Krizhevsky, 2009): 60 000 images of 32×32 pixels, 600 of each of 100 classes.

Few-shot learning splits the classes, not the images, so the official training and test files are read as one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from team.data.pickles import read_pickle
from team.data.source import DataError, DataSet, Picture, Reading, require


def read(folder: Path, dataset: DataSet, part: str, classes: tuple[str, ...] | None) -> Reading:
    files = tuple(require(folder / name, dataset) for name in ("meta", "train", "test"))
    names = read_pickle(files[0]).get("fine_label_names", [])
    pictures: dict[str, list[Picture]] = {name: [] for name in names}
    total = 0
    for file in files[1:]:
        content = read_pickle(file)
        pixels, labels = content.get("data"), content.get("fine_labels") or []
        if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape != (len(labels), 3072):
            raise DataError(f"{file} should hold uint8 data [n, 3072] and n fine_labels: get {dataset.title} again")
        if labels and not 0 <= min(labels) <= max(labels) < len(names):
            raise DataError(f"{file} has labels beyond the {len(names)} class names of meta: get {dataset.title} again")
        images = pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        for position, label in enumerate(labels):
            pictures[names[label]].append(Picture(f"{file.name}[{position}]", images[position]))
        total += len(images)
    dataset.check_total(total, folder)
    wanted = tuple(names) if classes is None else classes
    dataset.check_classes(pictures, wanted, folder)
    return Reading({name: pictures[name] for name in wanted}, files)


CIFAR100 = DataSet(
    name="cifar100",
    title="CIFAR-100",
    read=read,
    folder="cifar-100-python",
    archive="cifar-100-python.tar.gz",
    marks=("meta", "train", "test"),
    by_hand="Put cifar-100-python.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html, or the folder "
    "cifar-100-python it unpacks to, into the folder given as root",
    images=60_000,
    per_class=600,
    default_split="cifar-fs",
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    md5="eb9058c3a382ffc7106e4002c42a8d85",
)
