"""One writer at a time: a lock that the system releases however its holder ends, even by kill -9."""

from __future__ import annotations

import os
import sys
from pathlib import Path


class LockedError(OSError):
    """Another process holds the lock."""


class Lock:
    """Holds ``path`` (a small file of its own, never deleted) from construction to :meth:`release`."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._file)
        except OSError as error:
            os.close(self._file)
            raise LockedError(f"{path} is held by another process") from error

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
