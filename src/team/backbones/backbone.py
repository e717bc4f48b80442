"""Two views of every image at test: as it is, and mirrored."""

from __future__ import annotations

from torch import Tensor, nn


class Backbone(nn.Module):
    """A network of ours: images ``[n, 3, H, W]`` -> features ``[n, dim]``.

    mirror: outside of training, features are the mean of those of the image and of its mirror image. It costs a second
    pass and needs no training; the mean of two views varies less from picture to picture of a class than one does.
    """

    dim: int

    def __init__(self, mirror: bool) -> None:
        super().__init__()
        self.mirror = mirror

    def features(self, images: Tensor) -> Tensor:
        """Features of the images as they are."""
        raise NotImplementedError

    def forward(self, images: Tensor) -> Tensor:
        features = self.features(images)
        if self.training or not self.mirror:
            return features
        return (features + self.features(images.flip(-1))) / 2
