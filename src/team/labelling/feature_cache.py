"""Features that were computed before, by the content of the file they belong to.

A cache is a folder of safetensors files, each with digests ``[n, 32]`` and features ``[n, d]``. Files are only added,
each written atomically, so a run that is interrupted keeps what it has done and several runs may share a cache.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from team.files import atomic_path

_MANY_FILES = 64


class FeatureCache:
    """folder: of one embedder, since features of another must not be mixed in; dim: features per image."""

    def __init__(self, folder: Path, dim: int) -> None:
        self.folder, self.dim = folder, dim
        self._rows: dict[bytes, tuple[Path, int]] = {}
        self._new: dict[bytes, NDArray[np.float32]] = {}
        self._open: dict[Path, Any] = {}
        self._lock = Lock()
        files = sorted(folder.glob("*.safetensors"))
        for path in files:
            for row, digest in enumerate(self._digests(path)):
                self._rows[digest] = (path, row)
        if len(files) > _MANY_FILES:
            self._merge(files)

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._rows or digest in self._new

    def __getitem__(self, digest: bytes) -> NDArray[np.float32]:
        """float32 ``[d]``"""
        if digest in self._new:
            return self._new[digest]
        path, row = self._rows[digest]
        if path not in self._open:
            file: Any = safe_open(path, "numpy")
            self._open[path] = file.get_slice("features")  # rows are read when they are wanted
        features: NDArray[np.float32] = self._open[path][row]
        return features

    def add(self, digests: Iterable[bytes], features: NDArray[np.float32]) -> None:
        """One row of ``features [n, d]`` for each digest; from any thread."""
        with self._lock:
            self._new.update(zip(digests, features, strict=True))

    @property
    def unsaved(self) -> int:
        return len(self._new)

    def save(self) -> None:
        """Write what was added since the last time."""
        with self._lock:
            if self._new:
                digests, features = list(self._new), np.stack(list(self._new.values()))
                path = self._write(digests, features)
                self._rows.update({digest: (path, row) for row, digest in enumerate(digests)})
                self._open[path] = features
                self._new = {}

    def _write(self, digests: list[bytes], features: NDArray[np.float32]) -> Path:
        path = self.folder / f"{uuid.uuid4().hex}.safetensors"
        table = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, 32)
        with atomic_path(path) as temporary:
            save_file({"digests": table, "features": np.ascontiguousarray(features, np.float32)}, temporary)
        return path

    def _digests(self, path: Path) -> list[bytes]:
        """Those of one file; none, and the file is left out, where it is broken or not of this embedder."""
        try:
            with safe_open(path, "numpy") as file:
                table, shape = file.get_tensor("digests"), file.get_slice("features").get_shape()
        except (OSError, SafetensorError):
            return []
        right = table.dtype == np.uint8 and table.ndim == 2 and table.shape[1] == 32
        return [row.tobytes() for row in table] if right and shape == [len(table), self.dim] else []

    def _merge(self, files: list[Path]) -> None:
        """One file in place of many; a run that still reads the old ones finds them gone only if it opens them late."""
        digests = list(self._rows)
        if digests:
            path = self._write(digests, np.stack([self[digest] for digest in digests]))
            self._rows = {digest: (path, row) for row, digest in enumerate(digests)}
        self._open = {}
        for file in files:
            file.unlink(missing_ok=True)
