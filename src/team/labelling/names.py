"""Names that come from outside, made safe to write: class names as folder names, any text as a cell of a table.

Both can be undone: folder names through the table that is written beside them, cells by :func:`from_cell`.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath

# What a spreadsheet takes for the beginning of a formula, in ASCII and in full width.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NOT_IN_FOLDER_NAMES = set('/\\:*?"<>|%\x7f')
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
_OURS = {"classes.json", "labels.csv"}  # files that stand beside the folders
_LONGEST = 100  # bytes of a folder name; file systems end at 255, and paths on some at 260


def check_label(label: object) -> str:
    """``label``, if it can be a class name."""
    if not isinstance(label, str):
        raise TypeError(f"a label must be text, not {label!r}")
    if not label.strip():
        raise ValueError(f"a label must not be empty, but one is {label!r}")
    try:
        label.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"the label {label!r} is not valid Unicode: rename the class") from error
    return label


def check_path(path: str) -> str:
    """``path``, if it is relative and stays below the folder it is relative to."""
    pure = PurePosixPath(path)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise ValueError(f"{path!r} is not a path below the labelled folder")
    return path


def folder_names(labels: Iterable[str]) -> dict[str, str]:
    """A folder name for each class name: one level, visible, valid on every system, different where case is ignored."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for label in sorted(set(labels)):
        name = _folder_name(label)
        if (folded := _folded(name)) in taken:
            name = f"{name}-{_short_digest(label)}"
            folded = _folded(name)
        taken.add(folded)
        names[label] = name
    return names


def _folder_name(label: str) -> str:
    """Percent-encoded where need be, as in addresses on the web."""
    name = "".join(
        _percent(character) if ord(character) < 32 or character in _NOT_IN_FOLDER_NAMES else character
        for character in label
    )
    if name[0] in ". ~-":  # hidden, lost in listings, expanded or taken for an option by shells
        name = _percent(name[0]) + name[1:]
    if name[-1] in ". ":
        name = name[:-1] + _percent(name[-1])
    if name.split(".")[0].casefold() in _RESERVED or name.casefold() in _OURS:
        name = _percent(name[0]) + name[1:]
    if len(name.encode()) > _LONGEST:
        name = f"{name.encode()[:_LONGEST].decode(errors='ignore').rstrip('. ')}-{_short_digest(label)}"
    return name


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _short_digest(label: str) -> str:
    return hashlib.sha256(label.encode()).hexdigest()[:8]


def to_cell(text: str) -> str:
    """``text`` for a table: where a spreadsheet would see a formula, or a quote mark would be lost, a ' goes first."""
    return f"'{text}" if text.startswith(("'", *_FORMULA)) else text


def from_cell(cell: str) -> str:
    """What :func:`to_cell` was given."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(("'", *_FORMULA)) else cell
