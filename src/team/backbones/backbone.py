"""What our networks share: images in, features out, and at test the mean over several views of every image."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_ENLARGED, _MIDDLE = 9 / 8, 4 / 5  # of a side


class Backbone(nn.Module):
    """A network of ours: images ``[n, 3, H, W]`` -> features ``[n, dim]``.

    Outside of training, features are the mean of those of several views of an image. Each costs a pass and needs no
    training; the mean varies less from picture to picture of a class than one of them does.
    mirror: the image and its mirror image
    zoom: the image, enlarged by an eighth as well, and its middle (four fifths of each side) at full size
    """

    dim: int

    def __init__(self, *, mirror: bool, zoom: bool = False) -> None:
        super().__init__()
        self.mirror, self.zoom = mirror, zoom

    @property
    def views(self) -> int:
        """How many views of an image its features are the mean of, outside of training."""
        return (2 if self.mirror else 1) * (3 if self.zoom else 1)

    def features(self, images: Tensor) -> Tensor:
        """Features of the images as they are."""
        raise NotImplementedError

    def forward(self, images: Tensor) -> Tensor:
        if self.training or self.views == 1:
            return self.features(images)
        return torch.stack([self.features(view) for view in self._seen(images)]).mean(0)

    def _seen(self, images: Tensor) -> Iterator[Tensor]:
        for view in [images, *_zoomed(images)] if self.zoom else [images]:
            yield view
            if self.mirror:
                yield view.flip(-1)


def _zoomed(images: Tensor) -> tuple[Tensor, Tensor]:
    height, width = images.shape[-2:]
    larger = round(height * _ENLARGED), round(width * _ENLARGED)
    top, left = (round(side * (1 - _MIDDLE) / 2) for side in (height, width))
    middle = images[..., top : height - top, left : width - left]
    return _resized(images, larger), _resized(middle, (height, width))


def _resized(images: Tensor, size: tuple[int, int]) -> Tensor:
    result = F.interpolate(images, size, mode="bilinear", align_corners=False)
    return result.contiguous(memory_format=torch.channels_last)
