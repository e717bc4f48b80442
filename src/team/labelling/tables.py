"""Tables of labels (CSV): path, label, confidence, source. Any text survives being written and read."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from team.files import write_text
from team.labelling.names import check_label, from_cell, to_cell
from team.labelling.rows import LabelledImage

COLUMNS = ("path", "label", "confidence", "source")


def write_table(rows: Sequence[LabelledImage], out: Path) -> None:
    text = io.StringIO(newline="")
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    plain.writerow(COLUMNS)
    for row in rows:
        writer = quoted if "\r" in row.path + row.label else plain  # before Python 3.13 a lone \r is not quoted
        writer.writerow([to_cell(row.path), to_cell(row.label), f"{row.confidence:.4f}", row.source])
    write_text(out, text.getvalue())


def read_labels(file: Path, folder: Path) -> dict[str, str]:
    """Labels by path relative to ``folder``, from a table with the columns path and label.

    Rows without a label, and rows whose source is "predicted" (as in our own tables), are no labels. Commas, semicolons
    or tabs may separate, and paths may be absolute: spreadsheets and file managers write such.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} cannot be read as a table of labels in UTF-8 ({error})") from error
    first = text.split("\n", 1)[0]
    separator = max(",;\t", key=first.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
    columns = {(name or "").strip().lower(): name for name in reader.fieldnames or ()}
    if not {"path", "label"} <= columns.keys():
        found = ", ".join(repr(name) for name in columns) or "nothing"
        raise ValueError(f"{file} must begin with a line that names the columns path and label; it names {found}")
    labels: dict[str, str] = {}
    for row in reader:
        path, label = (from_cell(row[columns[name]] or "") for name in ("path", "label"))
        source = row[columns["source"]] if "source" in columns else "human"
        if not label.strip() or source == "predicted":
            continue
        path = _relative(path, folder)
        if labels.setdefault(path, check_label(label)) != label:
            raise ValueError(f"{file} gives {path!r} both the label {labels[path]!r} and {label!r}")
    return labels


def _relative(path: str, folder: Path) -> str:
    pure = Path(path)
    if pure.is_absolute():
        for base in (folder, folder.absolute(), folder.resolve()):
            if pure.is_relative_to(base):
                return pure.relative_to(base).as_posix()
    return PurePosixPath(path).as_posix()
