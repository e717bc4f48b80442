"""Finding the images of a folder and decoding them, whatever they are; a bad file costs itself and nothing else."""

from __future__ import annotations

import hashlib
import io
import os
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from team.data.folder import ENDINGS
from team.data.pixels import as_rgb

LOOKS_LIKE_AN_IMAGE = ENDINGS | {".jpe", ".jfif", ".jp2", ".avif", ".pbm", ".pnm", ".tga", ".ico", ".heic", ".heif"}
"""Endings of files that are read, or reported where Pillow cannot read them; all else in a folder is left alone."""

DECODING = "JPEG at reduced scale, means of whole pixels above 3 times the size, bicubic by torch"
"""How :func:`decode` makes pixels: part of what features are kept by, so whoever changes one changes the other."""

LARGEST_FILE = 1 << 29
_GAP = 3
LARGEST_PICTURE = 90_000_000  # pixels to be decoded, about a quarter of a gigabyte
# Named, so that a file with an innocent ending never reaches a reader that runs other programs (EPS, WMF).
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF", "TGA", "ICO")


@cache
def readable_formats() -> list[str]:
    """Those of ``_FORMATS`` that this build of Pillow reads."""
    Image.init()
    return [name for name in _FORMATS if name in Image.OPEN]


class BadImage(ValueError):
    """A file that cannot be read as an image; the message says why, for a person."""


def find_images(folder: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Paths below ``folder``, relative, with forward slashes, sorted; and (path, reason) of those that cannot be used.

    Hidden files and folders are left aside, and links to folders are not followed, so that no file is met twice.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    paths, unusable = [], []
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = Path(where, name)
            if name.startswith(".") or path.suffix.lower() not in LOOKS_LIKE_AN_IMAGE or not path.is_file():
                continue
            relative = path.relative_to(folder).as_posix()
            try:
                relative.encode("utf-8")
                paths.append(relative)
            except UnicodeEncodeError:
                shown = os.fsencode(relative).decode("utf-8", "backslashreplace")
                unusable.append((shown, "its name is not valid UTF-8: rename it"))
    return sorted(paths), sorted(unusable)


def read_file(path: Path) -> tuple[bytes, bytes]:
    """The content of a file, and its digest (32 bytes)."""
    try:
        if (size := path.stat().st_size) > LARGEST_FILE:
            raise BadImage(f"the file has {size:,} bytes, more than {LARGEST_FILE:,}")
        content = path.read_bytes()
    except OSError as error:
        raise BadImage(f"cannot be read ({error.strerror or error})") from error
    return content, hashlib.blake2b(content, digest_size=32).digest()


def image_size(path: Path) -> tuple[int, int]:
    """Width and height as they stand in the file."""
    with Image.open(path, formats=readable_formats()) as image:
        return image.size


def decode(content: bytes, size: int) -> NDArray[np.uint8]:
    """RGB pixels ``[size, size, 3]`` of an image file, upright, the whole picture squeezed into the square.

    A JPEG is decoded at the smallest of the scales its format offers that is not below ``size``.
    """
    try:
        with Image.open(io.BytesIO(content), formats=readable_formats()) as image:
            image.draft("RGB" if image.mode == "YCbCr" else image.mode, (size, size))
            width, height = image.size
            if width * height > LARGEST_PICTURE:
                raise BadImage(f"it has {width}×{height} pixels, more than {LARGEST_PICTURE:,}")
            return _squeezed(as_rgb(image), size)
    except BadImage:
        raise
    except Image.DecompressionBombError as error:
        raise BadImage(f"too many pixels ({error})") from error
    except Exception as error:  # Pillow's decoders fail with many types; each means that this file is no image
        reason = "" if isinstance(error, UnidentifiedImageError) else f" ({error})"
        raise BadImage(f"is no image that can be decoded{reason}") from error


def _squeezed(image: Image.Image, size: int) -> NDArray[np.uint8]:
    """RGB pixels ``[size, size, 3]``: bicubic with antialiasing, Pillow's to a rounding, by torch's vectorised code.

    A side of more than ``_GAP`` times the size is first shortened by averaging whole groups of pixels.
    """
    across, down = (max(1, side // (_GAP * size)) for side in image.size)
    if (across, down) != (1, 1):
        image = image.reduce((across, down))
    pixels = torch.from_numpy(np.array(image))[None].permute(0, 3, 1, 2)
    if image.size != (size, size):
        pixels = torch.nn.functional.interpolate(pixels, (size, size), mode="bicubic", antialias=True)
    return pixels[0].permute(1, 2, 0).numpy()
