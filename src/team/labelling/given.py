"""The labels a folder comes with: from a table, from the names of its sub-folders, or from Python."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from team.files import AnyPath
from team.labelling.export import CLASSES_FILE
from team.labelling.names import check_label
from team.labelling.tables import read_labels

UNLABELLED_FOLDERS = {"unlabelled", "unlabeled"}
"""Sub-folders whose name is no class; images that lie in no sub-folder have no label either."""

Labels = Mapping[str, str] | AnyPath | None


def given_labels(folder: Path, paths: Sequence[str], labels: Labels, *, subfolders: bool | None) -> dict[str, str]:
    """Labels by path, each the path of an image of the folder.

    labels: ``{path: label}``, or a table (see :func:`team.labelling.tables.read_labels`), or None
    subfolders: whether the name of the sub-folder an image lies in is its label, unless ``labels`` has another; None
        stands for: only if there are no ``labels``
    """
    if isinstance(labels, (str, os.PathLike)):
        labels = read_labels(Path(labels), folder)
    named = {path: check_label(label) for path, label in (labels or {}).items()}
    known = set(paths)
    if missing := sorted(set(named) - known):
        turned = {path: path.replace("\\", "/") for path in missing}
        if unknown := [path for path, other in turned.items() if other not in known]:
            shown = ", ".join(repr(path) for path in unknown[:3]) + (", ..." if len(unknown) > 3 else "")
            raise ValueError(
                f"{len(unknown)} labelled paths are not images below {folder}: {shown}; paths must be relative to it"
            )
        named = {turned.get(path, path): label for path, label in named.items()}
    if subfolders or (subfolders is None and labels is None):
        named = subfolder_labels(folder, paths) | named
    return named


def subfolder_labels(folder: Path, paths: Sequence[str]) -> dict[str, str]:
    """The sub-folder of ``folder`` that each path lies in; folder names of our own exports become class names again."""
    names = _class_names(folder / CLASSES_FILE)
    labels = {}
    for path in paths:
        top, slash, _ = path.partition("/")
        if slash and top.lower() not in UNLABELLED_FOLDERS:
            labels[path] = names.get(top, top)
    return labels


def _class_names(file: Path) -> dict[str, str]:
    """Class names by folder name, from a file that :func:`team.labelling.export.export` wrote, if this is one."""
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    right = isinstance(table, dict) and all(isinstance(label, str) for label in table.values())
    return table if right else {}
