"""The four-block convolutional network of Sec. 4.2."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from team.backbones.backbone import Backbone


class Conv4(Backbone):
    """Four blocks of 3×3 convolution, batch normalisation, ReLU and 2×2 max-pooling, then an average to 2×2 cells.

    images: ``[n, 3, H, W]`` with H, W >= 32 (84 in the paper) -> features ``[n, dim]``, dim = 4·filters = 256.
    The paper's "global average pooling" to 256 numbers leaves 2×2 cells of 64 filters.
    mirror: average the features of each image and its mirror image at test, see :class:`Backbone`
    """

    def __init__(self, *, filters: int = 64, mirror: bool = False) -> None:
        super().__init__(mirror=mirror)
        self.dim = 4 * filters
        channels = [3, filters, filters, filters, filters]
        self.blocks = nn.Sequential(*(_block(*pair) for pair in pairwise(channels)))
        self.pool = nn.AdaptiveAvgPool2d(2)

    def features(self, images: Tensor) -> Tensor:
        features: Tensor = self.pool(self.blocks(images)).flatten(1)
        return features


def _block(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        # The bias of a convolution before batch normalisation would be subtracted again.
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.MaxPool2d(2),  # before the ReLU: the same result (both are monotone), a quarter of the work
        nn.ReLU(inplace=True),
    )
