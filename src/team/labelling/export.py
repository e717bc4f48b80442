"""Writing labelled images in the forms other tools read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from team.labelling.rows import LabelledImage

Form = Literal["csv", "folders", "imagefolder", "coco", "label-studio"]


def export(rows: Sequence[LabelledImage], folder: Path, out: Path, form: Form, *, link: bool = False) -> None:
    """Write ``rows``, labels of images below ``folder``, to ``out``: a file for csv, coco and label-studio, a new
    folder for folders and imagefolder. Images are copied, or linked to with ``link``; a source is never altered.
    """
    raise NotImplementedError
