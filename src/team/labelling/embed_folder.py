"""From a folder of images to features: every file decoded, embedded once, and remembered by its content."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class FolderFeatures:
    """paths: of the images, relative to the folder, with forward slashes, sorted; features: float32 ``[n, d]``;
    skipped: (path, reason) of every file that could not be read as an image.
    """

    paths: list[str]
    features: NDArray[np.float32]
    skipped: list[tuple[str, str]]


def embed_folder(folder: Path, *, embedder: Any = None, progress: bool | None = True) -> FolderFeatures:
    """Features of all images below ``folder``."""
    raise NotImplementedError
