"""The journal: every action of a labelling session, one JSON object per line, on the disk before it is acknowledged.

The first line names the format and the folder. A line counts once it is whole, so a crash while writing loses at most
the action that was never acknowledged. Lines are ASCII: file names that are no valid Unicode survive as escapes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from team.labelling.lock import Lock, LockedError

FORMAT = "team labelling journal"
VERSION = 1

Entry = dict[str, Any]


class JournalError(OSError):
    """The journal cannot be read or written; the message says what to do."""


class Journal:
    """An open journal, held by this process alone.

    ``entries`` are the actions found on opening, in order; ``torn`` tells whether half a line was found at the end and
    taken off. A new journal is readable by its owner only.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._lock = Lock(path.with_name(path.name + ".lock"))
        except LockedError as error:
            raise JournalError(
                f"the session {path} is open in another window of this program; use that one, or stop it first"
            ) from error
        self._file = -1
        try:
            new = not path.exists()
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
            content = path.read_bytes()
            self._length = content.rfind(b"\n") + 1
            self.torn = self._length < len(content)
            if self.torn:
                os.ftruncate(self._file, self._length)
            lines = content[: self._length].splitlines()
            self.entries = [_parse(line, number, path) for number, line in enumerate(lines, 1)]
            if self.entries:
                _check_header(self.entries.pop(0), path, folder)
            else:
                self.append({"format": FORMAT, "version": VERSION, "folder": str(folder)})
            if new:
                _sync_folder(path.parent)
        except BaseException:
            self.close()
            raise

    def append(self, entry: Entry) -> None:
        """Write one line and wait until the disk has it. On failure nothing is added, and a later call may succeed."""
        if self._file < 0:
            raise JournalError(f"{self.path} is closed after an earlier failure; start the program again")
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            os.fsync(self._file)
        except OSError as error:
            self._take_back()
            raise JournalError(
                f"not saved: {error.strerror or error} ({self.path}); make room on that disk, then try again"
            ) from error
        self._length += len(line)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._lock.release()

    def _take_back(self) -> None:
        """Cut off what a failed append left. If even that fails, what is on the disk is unknown: write no more."""
        try:
            os.ftruncate(self._file, self._length)
            os.fsync(self._file)
        except OSError:
            os.close(self._file)
            self._file = -1


def _parse(line: bytes, number: int, path: Path) -> Entry:
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if not isinstance(entry, dict):
        raise JournalError(
            f"line {number} of {path} is damaged, so the labels after it cannot be trusted; restore the file from a "
            f"copy, or keep the first {number - 1} lines and move the rest away"
        )
    return entry


def _check_header(header: Entry, path: Path, folder: Path) -> None:
    if header.get("format") != FORMAT:
        raise JournalError(f"{path} is not a labelling session; choose another file")
    if header.get("version") != VERSION:
        raise JournalError(
            f"{path} was written by another version of this program (format {header.get('version')}, this one reads "
            f"{VERSION}); use that version"
        )
    if header.get("folder") != str(folder):
        raise JournalError(
            f"{path} is the session of {header.get('folder')}, not of {folder}; choose another file, or if the "
            "folder was moved, correct the first line of the session"
        )


def _sync_folder(folder: Path) -> None:
    """A new file's name is on the disk only once its folder is."""
    if os.name != "nt":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
