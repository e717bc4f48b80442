"""The data sets there are, and one checked request for a part of one of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from team.data.cache import Index, Settings, read_index, read_shard
from team.data.cifar100 import CIFAR100
from team.data.cub import CUB
from team.data.folder import FOLDER
from team.data.miniimagenet import MINIIMAGENET
from team.data.pixels import ENCODINGS
from team.data.source import DataError, DataSet, Reading
from team.data.splits import Split, SplitChoice
from team.files import cache_folder

DATASETS: dict[str, DataSet] = {entry.name: entry for entry in (MINIIMAGENET, CIFAR100, CUB, FOLDER)}


def find(name: str) -> DataSet:
    if name not in DATASETS:
        raise DataError(f"data set {name!r} is not known: choose one of {', '.join(DATASETS)}")
    return DATASETS[name]


@dataclass(frozen=True)
class Request:
    """What was asked for, checked: the data set, its split, the settings of a part, and where the cache is."""

    dataset: DataSet
    split: Split
    settings: Settings
    cache: Path

    @classmethod
    def checked(
        cls,
        name: str,
        part: str | None,
        root: str | Path | None,
        split: SplitChoice,
        size: int,
        crop: bool,
        encoding: str,
        cache: str | Path | None,
    ) -> Request:
        """All that can be wrong is found here, before any work; ``part=None`` stands for the first part there is."""
        dataset = find(name)
        if not 8 <= size <= 1024:
            raise DataError(f"size {size} is outside 8 to 1024 pixels")
        if encoding not in ENCODINGS:
            raise DataError(f"encoding {encoding!r} is not one of {', '.join(ENCODINGS)}")
        chosen = Split(dataset, split)
        if name == FOLDER.name:
            # The cache goes by the folder's own name, so that it can be read where the folder is not.
            if root is None:
                raise DataError("which folder? Give root, the folder that holds one folder of images per class")
            name += "-" + re.sub(r"[^A-Za-z0-9_.]+", "_", Path(root).expanduser().resolve().name)
        settings = Settings(name, chosen.label, chosen.parts[0], size, crop and dataset.boxes, encoding)
        request = cls(dataset, chosen, settings, cache_folder() / "data" if cache is None else Path(cache))
        return request if part is None else request.of(part)

    def of(self, part: str) -> Request:
        """The same request for another part."""
        self.split.classes(part)  # refuses a part that is not there
        return replace(self, settings=replace(self.settings, part=part))

    def read(self, folder: Path) -> Reading:
        """The pictures of this part's classes, in the order of the split."""
        part = self.settings.part
        classes = self.split.classes(part)
        reading = self.dataset.read(folder, self.dataset, part, classes)
        if classes is None:
            chosen = self.split.divide(tuple(reading.pictures), part)
            reading = Reading({name: reading.pictures[name] for name in chosen}, reading.decisive)
        return reading

    def index(self) -> Index | None:
        """The index of what is prepared; None where nothing is."""
        index = read_index(self.cache, self.settings)
        classes = self.split.classes(self.settings.part)
        if index is not None and classes is not None and index.classes != classes:
            raise DataError(
                f"{self.cache / self.settings.key} was prepared with other classes than the split {self.split.label} "
                f"has; make it anew: {self.settings.command}"
            )
        return index

    def current(self, source: str) -> Index | None:
        """The index of a whole and unbroken preparation from this source, if there is one."""
        try:
            index = self.index()
            if index is None or index.source != source:
                return None
            for shard in index.shards:
                read_shard(self.cache, index, shard)
            return index
        except DataError:
            return None
