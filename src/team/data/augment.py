"""From bytes to network input, on whatever device the bytes are: normalisation, and augmentation from drawn numbers.

All random numbers are drawn beforehand on the CPU (`Augmentation.draw`), so that a run does not depend on the device,
can be resumed at any step, and can be captured in a CUDA graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F


@lru_cache
def _mean_and_std(device: torch.device) -> tuple[Tensor, Tensor]:
    """Per channel ``[3, 1, 1]``, made once per device: a CUDA graph cannot hold a copy from Python."""
    values = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]], device=device)
    return values[0].reshape(3, 1, 1), values[1].reshape(3, 1, 1)


def normalise(images: Tensor, size: int | None = None) -> Tensor:
    """uint8 ``[n, 3, H, W]`` -> float32, centred and scaled per channel, resized to size×size if given."""
    pixels = images.float() / 255
    if size is not None and pixels.shape[-2:] != (size, size):
        pixels = F.interpolate(pixels, (size, size), mode="bilinear", align_corners=False)
    return _standardise(pixels)


def _standardise(pixels: Tensor) -> Tensor:
    mean, std = _mean_and_std(pixels.device)
    return (pixels - mean) / std


@dataclass(frozen=True)
class Augmentation:
    """Random crops, flips and colour, each an amount; the default is light, which suits small networks.

    crop: about the smallest share of the image's area that a crop keeps (1: no cropping)
    flip: whether half of the images are mirrored left to right
    colour: how far brightness, contrast and saturation may move, as a fraction
    shift: how far an image may be moved, as a fraction of its side; what moves in is black
    """

    crop: float = 0.8
    flip: bool = True
    colour: float = 0.1
    shift: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.crop <= 1 or not 0 <= self.colour < 1 or not 0 <= self.shift < 1:
            raise ValueError(f"need 0 < crop <= 1, 0 <= colour < 1 and 0 <= shift < 1, not {self}")

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """What to do with each image, ``[count, 7]``: scales and offsets in x and y, three colour factors."""
        u = torch.rand(count, 8, generator=generator)
        area = self.crop + (1 - self.crop) * u[:, 0]
        ratio = ((u[:, 1] * 2 - 1) * 0.2876820724517809).exp() if self.crop < 1 else torch.ones(count)  # 3/4 to 4/3
        width, height = (area * ratio).sqrt().clamp_max(1), (area / ratio).sqrt().clamp_max(1)
        x = (1 - width + self.shift) * (u[:, 2] * 2 - 1)
        y = (1 - height + self.shift) * (u[:, 3] * 2 - 1)
        sign = torch.where(u[:, 4] < 0.5, -1.0, 1.0) if self.flip else torch.ones(count)
        colour = 1 + self.colour * (u[:, 5:] * 2 - 1)
        return torch.cat([torch.stack([width * sign, height, x, y], 1), colour], 1)

    def apply(self, images: Tensor, drawn: Tensor, size: int | None = None) -> Tensor:
        """uint8 ``[n, 3, H, W]`` and what was drawn for them ``[n, 7]`` -> network input ``[n, 3, size, size]``."""
        pixels = images.float() / 255
        size = size or images.shape[-1]
        if self.crop < 1 or self.flip or self.shift > 0 or size != images.shape[-1]:
            zero = torch.zeros_like(drawn[:, 0])
            rows = [drawn[:, 0], zero, drawn[:, 2], zero, drawn[:, 1], drawn[:, 3]]
            grid = F.affine_grid(torch.stack(rows, 1).reshape(-1, 2, 3), [len(images), 3, size, size], False)
            outside = "zeros" if self.shift > 0 else "border"
            pixels = F.grid_sample(pixels, grid, mode="bilinear", padding_mode=outside, align_corners=False)
        if self.colour > 0:
            brightness, contrast, saturation = drawn[:, 4:, None, None, None].unbind(1)
            pixels = pixels * brightness
            mean = pixels.mean((1, 2, 3), keepdim=True)
            pixels = mean + contrast * (pixels - mean)
            grey = pixels.mean(1, keepdim=True)
            pixels = (grey + saturation * (pixels - grey)).clamp(0, 1)
        return _standardise(pixels)
