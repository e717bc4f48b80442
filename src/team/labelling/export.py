"""Writing labelled images in the forms other tools read. A source image is never moved, altered or written over.

csv           a table: path, label, confidence, source
coco          one JSON file: images with their category, as for image classification in COCO's format
label-studio  one JSON file: tasks with annotations (from people) or predictions, for Label Studio's import
folders       one folder per class, as torchvision's ImageFolder reads
imagefolder   images at their own paths beside metadata.jsonl, as load_dataset("imagefolder") of Hugging Face reads

Paths in files are relative to the labelled folder, or to the folder written.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from team.files import write_json, write_text
from team.labelling.formats import coco, label_studio
from team.labelling.images import LOOKS_LIKE_AN_IMAGE
from team.labelling.names import check_label, check_path, folder_names
from team.labelling.rows import LabelledImage
from team.labelling.tables import write_table

Form = Literal["csv", "folders", "imagefolder", "coco", "label-studio"]
FORMS: tuple[str, ...] = get_args(Form)
CLASSES_FILE = "classes.json"


def export(rows: Sequence[LabelledImage], folder: Path, out: Path, form: Form, *, link: bool = False) -> None:
    """Write ``rows``, labels of images below ``folder``, to ``out``.

    out: a file, for csv, coco and label-studio; a folder that is new or empty, outside of ``folder``, for folders and
        imagefolder, into which images are copied, or, with ``link``, symbolic links to them are put
    """
    check_destination(folder, out, form)
    for row in rows:
        check_path(row.path)
        check_label(row.label)
    if len({row.path for row in rows}) < len(rows):
        raise ValueError("two rows have the same path; an image has one label")
    if form == "csv":
        write_table(rows, out)
    elif form == "coco":
        write_json(out, coco(rows, folder))
    elif form == "label-studio":
        write_json(out, label_studio(rows))
    else:
        _write_images(rows, folder, out, form, link)


def check_destination(folder: Path, out: Path, form: str) -> None:
    """Raise where writing to ``out`` could touch what is in ``folder`` or replace something else; writes nothing."""
    if form not in FORMS:
        raise ValueError(f"there is no form {form!r}; there are {', '.join(FORMS)}")
    source, target = folder.resolve(), out.resolve()
    if form in ("folders", "imagefolder"):
        if target.is_relative_to(source) or source.is_relative_to(target):
            raise ValueError(f"{out} and {folder} contain one another: choose a folder elsewhere for the copies")
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ValueError(f"{out} exists and is not an empty folder: choose a new name")
    elif out.is_dir():
        raise ValueError(f"{out} is a folder, but {form} is written to one file: give a file name")
    elif target.suffix.lower() in LOOKS_LIKE_AN_IMAGE or out.suffix.lower() in LOOKS_LIKE_AN_IMAGE:
        raise ValueError(f"{out} has the name of an image: choose a name that ends in .csv or .json")


def _write_images(rows: Sequence[LabelledImage], folder: Path, out: Path, form: str, link: bool) -> None:
    """All or nothing: the folder appears under its name when it is complete."""
    out.parent.mkdir(parents=True, exist_ok=True)
    names = folder_names(row.label for row in rows)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as temporary:
        work = Path(temporary, "export")
        work.mkdir()
        for row in rows:
            place = Path(names[row.label], row.path) if form == "folders" else Path(row.path)
            target = work / place
            target.parent.mkdir(parents=True, exist_ok=True)
            if link:
                final = (out / place).parent.absolute()
                target.symlink_to(os.path.relpath((folder / row.path).absolute(), final))
            else:
                shutil.copyfile(folder / row.path, target)
        if form == "folders":
            write_json(work / CLASSES_FILE, {name: label for label, name in names.items()})
            write_table(rows, work / "labels.csv")
        else:
            write_text(work / "metadata.jsonl", "".join(_metadata(row) for row in rows))
        if out.exists():  # it is empty, as was checked; not every system replaces a folder
            out.rmdir()
        os.replace(work, out)


def _metadata(row: LabelledImage) -> str:
    facts = {"file_name": row.path, "label": row.label, "confidence": round(row.confidence, 4), "source": row.source}
    return json.dumps(facts, ensure_ascii=False) + "\n"
