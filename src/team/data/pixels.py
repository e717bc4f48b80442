"""From an image of any kind to RGB pixels of the wanted size, and to the bytes the cache keeps of it.

Resizing is bicubic with antialiasing (Pillow's), straight to size×size without keeping the aspect ratio.
"""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from team.data.source import DataError, Picture

ENCODINGS = ("exact", "jpeg")
_ORIENTATION = 0x0112  # the EXIF tag a camera writes when it was held sideways


def resized(image: Image.Image, size: int) -> Image.Image:
    return image if image.size == (size, size) else image.resize((size, size), Image.Resampling.BICUBIC)


def as_rgb(image: Image.Image) -> Image.Image:
    """Upright, in RGB; transparency is laid over white, 16-bit greyscale keeps its upper eight bits."""
    image.load()  # so that the file may be closed
    if image.getexif().get(_ORIENTATION, 1) != 1:
        image = ImageOps.exif_transpose(image)  # a copy, which most pictures do not need
    if image.mode == "RGB":
        return image
    if image.mode.startswith("I"):
        values = np.asarray(image).astype(np.int64)
        image = Image.fromarray((values >> (8 if values.max(initial=0) > 255 else 0)).clip(0, 255).astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")


def clipped(box: tuple[float, float, float, float], width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of ``box`` (left, top, width, height), within an image of ``width`` × ``height``."""
    left, top = max(math.floor(box[0]), 0), max(math.floor(box[1]), 0)
    right, bottom = min(math.ceil(box[0] + box[2]), width), min(math.ceil(box[1] + box[3]), height)
    if left >= right or top >= bottom:
        raise ValueError(f"its bounding box {box} lies outside its {width}×{height} pixels")
    return left, top, right, bottom


def encode(picture: Picture, size: int, crop: bool, encoding: str) -> bytes:
    """The picture as an image file of size×size, or of its own size where that is smaller (then resized on reading).

    "exact" loses nothing: a file that already is a JPEG of that size is kept byte for byte, anything else becomes
    lossless WebP. "jpeg" is JPEG of quality 95 without chroma subsampling: for carrying large images.
    """
    box = picture.box if crop else None
    try:
        if isinstance(picture.content, Path):
            content = picture.content.read_bytes()
            with Image.open(io.BytesIO(content)) as opened:
                opened.load()
                ready = opened.format == "JPEG" and opened.mode == "RGB" and opened.size == (size, size)
                if ready and box is None and opened.getexif().get(_ORIENTATION, 1) == 1:
                    return content
                image = as_rgb(opened)
        else:
            image = Image.fromarray(np.ascontiguousarray(picture.content))
        if box is not None:
            image = image.crop(clipped(box, *image.size))
    except Exception as error:  # Pillow's decoders fail with many types; each means that this file is no image
        raise DataError(f"{picture.name} cannot be decoded ({error}): replace it by a good copy") from error
    out = io.BytesIO()
    if encoding == "jpeg":
        resized(image, size).save(out, "JPEG", quality=95, subsampling=0)
    else:
        image = resized(image, size) if image.width * image.height > size * size else image
        image.save(out, "WEBP", lossless=True, quality=0, method=0)
    return out.getvalue()


def decode(content: bytes | memoryview, size: int) -> NDArray[np.uint8]:
    """Pixels ``[3, size, size]`` of what :func:`encode` made."""
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(resized(image.convert("RGB"), size)).transpose(2, 0, 1)
