"""Which classes are for training, for choosing settings, and for the reported numbers.

A split is asked for by its short name (``split="fc100"``, a file in ``splits/``), as a JSON file of one's own, as a
mapping from part to class names, or, for a folder of one's own images, as fractions with a seed: ``"0.6-0.2-0.2@7"``.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from team.data.source import DataError, DataSet

PARTS = ("train", "val", "test")
SplitChoice = str | Path | Mapping[str, Sequence[str]] | None
_FRACTIONS = re.compile(r"(\d*\.?\d+)-(\d*\.?\d+)-(\d*\.?\d+)(?:@(\d+))?")


def split_names(dataset: DataSet) -> tuple[str, ...]:
    """The short names of the published splits of a data set, the default first."""
    files = (resources.files("team.data") / "splits").iterdir()
    prefix = f"{dataset.name}-"
    names = (file.name.removeprefix(prefix).removesuffix(".json") for file in files if file.name.startswith(prefix))
    return tuple(sorted(names, key=lambda name: (name != dataset.default_split, name)))


class Split:
    """A chosen split: ``label`` stands in file names, ``classes(part)`` are its classes in order."""

    def __init__(self, dataset: DataSet, choice: SplitChoice) -> None:
        self._lists: dict[str, tuple[str, ...]] | None = None
        self._fractions: tuple[float, ...] = ()
        choice = dataset.default_split if choice is None else choice
        if isinstance(choice, Mapping):
            self._lists = _checked(choice, "the split")
        elif (text := str(choice)) in split_names(dataset):
            file = resources.files("team.data") / "splits" / f"{dataset.name}-{text}.json"
            self._lists = _checked(json.loads(file.read_text(encoding="utf-8")), file.name)
            self.label = text
            return
        elif text.endswith(".json"):
            self._lists = _checked(_read_json(Path(text)), text)
        elif not split_names(dataset) and (match := _FRACTIONS.fullmatch(text)):
            *shares, seed = match.groups()
            self._fractions, self._seed = tuple(map(float, shares)), int(seed or 0)
            if abs(sum(self._fractions) - 1) > 1e-6:
                raise DataError(f"the fractions of split {text!r} add up to {sum(self._fractions):g}, not to 1")
            self.label = "-".join(f"{share:g}" for share in self._fractions) + f"@{self._seed}"
            return
        else:
            names = ", ".join(map(repr, split_names(dataset))) or "fractions such as '0.6-0.2-0.2@0' (@: the seed)"
            raise DataError(f"split {text!r} of {dataset.name} is not known: choose {names}, a .json file or a mapping")
        self.label = f"own-{hashlib.sha256(json.dumps(self._lists, sort_keys=True).encode()).hexdigest()[:10]}"

    def classes(self, part: str) -> tuple[str, ...] | None:
        """The classes of ``part``; None where that depends on the folder, see :meth:`divide`."""
        if part not in PARTS:
            raise DataError(f"part {part!r} is not one of {', '.join(PARTS)}")
        if part not in self.parts:
            raise DataError(f"split {self.label} has no classes for part {part!r}, only for {', '.join(self.parts)}")
        return None if self._lists is None else self._lists[part]

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that have classes."""
        shares = self._fractions if self._lists is None else [len(self._lists.get(part, ())) for part in PARTS]
        return tuple(part for part, share in zip(PARTS, shares, strict=True) if share)

    def divide(self, names: Sequence[str], part: str) -> tuple[str, ...]:
        """The share of ``names`` that belongs to ``part``, sorted; no part that has a share at all stays empty."""
        shuffled = sorted(names)
        random.Random(self._seed).shuffle(shuffled)
        _, val_share, test_share = self._fractions
        val, test = (max(round(share * len(names)), 1 if share else 0) for share in (val_share, test_share))
        train = len(names) - val - test
        if train < (1 if self._fractions[0] else 0):
            raise DataError(f"{len(names)} classes are too few for split {self.label}: {val} val, {test} test, 0 train")
        start, end = {"train": (0, train), "val": (train, train + val), "test": (train + val, len(names))}[part]
        return tuple(sorted(shuffled[start:end]))


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"the split file {path} cannot be read: {error}") from error


def _checked(lists: Any, where: str) -> dict[str, tuple[str, ...]]:
    """Parts with class names, no class in two of them or twice in one."""
    if not isinstance(lists, Mapping) or not lists or not set(lists) <= set(PARTS):
        raise DataError(f"{where} must map {', '.join(PARTS)} to lists of class names")
    seen: dict[str, str] = {}
    for part, names in lists.items():
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise DataError(f"{where} must give {part} as a list of class names, not {names!r:.60}")
        for name in names:
            if name in seen:
                raise DataError(f"{where} has class {name!r} in {seen[name]} and in {part}: parts must not overlap")
            seen[name] = part
    return {part: tuple(lists[part]) for part in PARTS if part in lists}
