"""Small pictures of the folder's images: decoded with limits, encoded anew, kept in memory and never on the disk.

What leaves is always a JPEG made here, so no byte of a file in the folder reaches the browser as it is.
"""

from __future__ import annotations

import io
import os
import stat
import threading
from collections import OrderedDict
from pathlib import Path
from typing import BinaryIO

from PIL import Image

from team.data.pixels import as_rgb
from team.labelling.images import LARGEST_PICTURE, readable_formats

SIDES = {"thumbnail": 256, "preview": 1024}
MEMORY = 96 * 2**20  # of JPEGs that are kept


class PictureError(ValueError):
    """A file that cannot be shown, and why, for a person to read."""


class Thumbnails:
    """Of the images below ``folder``. Safe to call from several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve(strict=True)
        self._kept: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def jpeg(self, path: str, side: int) -> bytes:
        """The image at ``path`` (relative to the folder), its longer side at most ``side``, as a JPEG."""
        key = (path, side)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        with open_inside(self._folder, path) as file:
            content = encode(file, side)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = content
                self._bytes += len(content)
            while self._bytes > MEMORY:
                self._bytes -= len(self._kept.popitem(last=False)[1])
        return content


def open_inside(folder: Path, path: str) -> BinaryIO:
    """Open a regular file below ``folder`` (which is resolved), following links only where they stay inside.

    After the path is resolved, it is walked anew without following any link, so that nobody can exchange a part of it
    for a link in between.
    """
    try:
        target = (folder / path).resolve(strict=True)
        parts = target.relative_to(folder).parts
    except (ValueError, OSError, RuntimeError) as error:
        raise PictureError("the file is no longer in the folder, or leads out of it") from error
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        if os.open in os.supports_dir_fd:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            for number, part in enumerate(parts, 1):
                try:
                    deeper = os.open(part, flags | (os.O_DIRECTORY if number < len(parts) else 0), dir_fd=handle)
                finally:
                    os.close(handle)
                handle = deeper
        else:
            handle = os.open(target, flags)
    except OSError as error:
        raise PictureError(f"the file cannot be opened: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise PictureError("it is not an ordinary file")
    return os.fdopen(handle, "rb")


def encode(file: BinaryIO, side: int) -> bytes:
    """A JPEG of the image in ``file``, upright and in RGB. The size is looked at before anything is decoded."""
    try:
        with Image.open(file, formats=readable_formats()) as image:
            image.draft("RGB", (side, side))  # a JPEG is decoded near the wanted size at once
            width, height = image.size
            if width * height > LARGEST_PICTURE:
                raise PictureError(f"{width} × {height} pixels are too many to show")
            small = as_rgb(image)
            small.thumbnail((side, side), Image.Resampling.BICUBIC, reducing_gap=2.0)
        out = io.BytesIO()
        small.save(out, "JPEG", quality=82)
        return out.getvalue()
    except PictureError:
        raise
    except Exception as error:  # Pillow's decoders fail with many types; each means that this file is no image
        raise PictureError(f"the file cannot be read as an image: {error}") from error
