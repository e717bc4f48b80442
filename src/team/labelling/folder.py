"""A labelled folder: a few labels in, all labels out, the doubtful ones first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from team.files import AnyPath
from team.labelling.embed_folder import FolderFeatures, embed_folder
from team.labelling.export import Form, export
from team.labelling.given import Labels, given_labels
from team.labelling.images import find_images
from team.labelling.names import check_label
from team.labelling.predict import Predictor, check_method
from team.labelling.rows import LabelledImage

if TYPE_CHECKING:
    import pandas


def label_folder(
    folder: AnyPath,
    labels: Labels = None,
    *,
    subfolders: bool | None = None,
    embedder: Any = None,
    method: str | None = None,
    progress: bool = True,
) -> FolderLabels:
    """Label every image below ``folder`` from the few labels given.

    labels: ``{relative path: label}``, or a CSV file with the columns path and label
    subfolders: take the names of sub-folders as labels too; by default, if ``labels`` is not given. Images in no
        sub-folder, or in one named "unlabelled", are those to be labelled.
    embedder: see :func:`team.labelling.embed_folder.embed_folder`; method: any of :func:`team.list_methods`
    """
    folder = Path(folder)
    check_method(method)
    given = given_labels(folder, find_images(folder)[0], labels, subfolders=subfolders)
    if not given:
        raise ValueError(
            f"there are no labels for {folder}: give a table with the columns path and label, or put at least one "
            "image of each class into a sub-folder named after it"
        )
    features = embed_folder(folder, embedder=embedder, progress=progress)
    readable = set(features.paths)
    if lost := sorted(set(given.values()) - {label for path, label in given.items() if path in readable}):
        raise ValueError(f"none of the labelled images of {lost[0]!r} can be read; label another one")
    human = {path: label for path, label in given.items() if path in readable}
    return FolderLabels(folder, features, human, method=method)


class FolderLabels:
    """Labels of all images of a folder. ``rows`` holds them in the order of their paths.

    folder: where the images are; skipped: (path, reason) of files that could not be read; classes: sorted names
    """

    def __init__(
        self, folder: Path, features: FolderFeatures, labels: Mapping[str, str], *, method: str | None = None
    ) -> None:
        self.folder, self.skipped, self.method = folder, features.skipped, method
        self._positions = {path: position for position, path in enumerate(features.paths)}
        self._predictor = Predictor(features.features)
        self._human: dict[str, str] = dict(labels)
        self._predict()

    def fix(self, path: str | Mapping[str, str], label: str | None = None) -> FolderLabels:
        """Set the right label of an image, or of several (``{path: label}``), and predict the others anew.

        A label may be of a new class. Returns this object.
        """
        if isinstance(path, str):
            if label is None:
                raise TypeError("fix needs a label: fix(path, label), or fix({path: label})")
            path = {path: label}
        for image, name in path.items():
            if image not in self._positions:
                raise ValueError(f"{image!r} is not among the images of {self.folder}; paths are relative to it")
            check_label(name)
        self._human |= path
        self._predict()
        return self

    def least_sure(self, count: int = 20) -> list[LabelledImage]:
        """The predictions with the lowest confidence, lowest first: what is best looked at and fixed."""
        predicted = [row for row in self.rows if row.source == "predicted"]
        return sorted(predicted, key=lambda row: row.confidence)[:count]

    def to_frame(self) -> pandas.DataFrame:
        """The rows as a data frame with the columns path, label, confidence, source."""
        try:
            import pandas
        except ImportError as error:
            raise ValueError("to_frame needs pandas: pip install 'team[label]', or use the attribute rows") from error
        return pandas.DataFrame([vars(row) for row in self.rows], columns=["path", "label", "confidence", "source"])

    def export(self, out: AnyPath, form: Form = "csv", *, link: bool = False) -> None:
        """Write all labels; see :func:`team.labelling.export.export`."""
        export(self.rows, self.folder, Path(out), form, link=link)

    def _predict(self) -> None:
        self.classes = sorted(set(self._human.values()))
        numbers = {name: number for number, name in enumerate(self.classes)}
        labels = np.full(len(self._positions), -1, np.int64)
        for path, label in self._human.items():
            labels[self._positions[path]] = numbers[label]
        probabilities = self._predictor.predict(labels, len(self.classes), method=self.method)
        best, confidence = probabilities.argmax(1), probabilities.max(1)
        self.rows = [
            LabelledImage(path, self.classes[best[position]], float(confidence[position]), "predicted")
            if path not in self._human
            else LabelledImage(path, self._human[path], 1.0, "human")
            for path, position in self._positions.items()
        ]
