"""Writing files so that a reader never sees half of one, and where cached files live."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

AnyPath = str | os.PathLike[str]
"""What public functions take for a path; they make it a ``Path`` at once."""


class WriteError(OSError):
    """A file cannot be written: the message says which one, why, and what to do."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the operating system says about a failed write, which often names no file, into a WriteError."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(
            f"{path} cannot be written ({error.strerror or error}): make room there or choose another folder, then "
            "start again; whatever was written before is unharmed"
        ) from error


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; on success it is flushed to disk and takes the place of ``path``.

    A crash at any moment leaves either the old file or the new one, never a mixture.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            with open(temporary, "rb") as written:
                os.fsync(written.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def cache_folder() -> Path:
    """``$TEAM_CACHE``, or ``team`` in the user's cache folder."""
    if chosen := os.environ.get("TEAM_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "team"
