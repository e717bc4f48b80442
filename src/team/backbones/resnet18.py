"""ResNet-18: He, Zhang, Ren and Sun, "Deep residual learning for image recognition", CVPR 2016."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from team.backbones.backbone import Backbone
from team.checks import check_whole

Stem = Literal["large", "small"]
_WIDTHS = (64, 64, 128, 128, 256, 256, 512, 512)  # of the blocks, in order


class ResNet18(Backbone):
    """images: ``[n, 3, H, W]`` (224×224 in the paper) -> features ``[n, 512]``; there is no last, classifying layer.

    blocks: how many of the last of the eight blocks give features, one after another; 2 make ``[n, 1024]``. The one
        before the last is less used to the training classes, and helps with new ones
    mirror, zoom: average the features of several views of each image at test, see :class:`Backbone`
    pool: features are the generalised mean of this order over all places, (mean xᵖ)^(1/p): 1 is the mean, as in the
        paper; the higher it is, the more do those places count where a feature is strong
    stem: "large" makes images four times smaller before the first block, as in the paper; "small", a 3×3 convolution
        that keeps their size, is what SimpleShot, TIM and others use for images of 84×84
    """

    def __init__(
        self, *, blocks: int = 1, mirror: bool = False, pool: float = 1.0, stem: Stem = "large", zoom: bool = False
    ) -> None:
        super().__init__(mirror=mirror, zoom=zoom)
        if not 1 <= pool < math.inf:
            raise ValueError(f"pool must be at least 1 and finite, not {pool}")
        check_whole(1, blocks=blocks)
        if blocks > len(_WIDTHS):
            raise ValueError(f"blocks must be at most {len(_WIDTHS)}, as many as there are, not {blocks}")
        self.pool, self.blocks, self.dim = pool, blocks, sum(_WIDTHS[-blocks:])
        if stem not in get_args(Stem):
            raise ValueError(f"stem must be 'large' or 'small', not {stem!r}")
        large = stem == "large"
        first = _conv(3, 64, 7, 2) if large else _conv(3, 64, 3, 1)
        smaller = [nn.MaxPool2d(3, stride=2, padding=1)] if large else []
        self.stem = nn.Sequential(first, nn.BatchNorm2d(64), nn.ReLU(inplace=True), *smaller)
        self.stages = nn.Sequential(_stage(64, 64, 1), _stage(64, 128, 2), _stage(128, 256, 2), _stage(256, 512, 2))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, images: Tensor) -> Tensor:
        places: Tensor = self.stem(images)
        features = []
        for number, block in enumerate(block for stage in self.stages.children() for block in stage.children()):
            places = block(places)
            if number >= len(_WIDTHS) - self.blocks:
                features.append(places.mean((-2, -1)) if self.pool == 1 else generalised_mean(places, self.pool))
        return torch.cat(features, -1) if self.blocks > 1 else features[0]


def generalised_mean(places: Tensor, order: float) -> Tensor:
    """(mean xᵖ)^(1/p) over the places of ``[n, d, h, w]``, none below zero -> ``[n, d]``.

    Taken relative to the strongest place, powers neither overflow nor vanish; a feature that is zero everywhere has no
    slope there.
    """
    values = places.to(torch.promote_types(places.dtype, torch.float32))
    largest = values.detach().amax((-2, -1), keepdim=True).clamp_min(1e-6)
    powers = ((values / largest) ** order).mean((-2, -1)).clamp_min(1e-12)
    return (powers ** (1 / order) * largest.flatten(1)).to(places.dtype)


def _stage(inputs: int, outputs: int, stride: int) -> nn.Module:
    return nn.Sequential(_Block(inputs, outputs, stride), _Block(outputs, outputs, 1))


class _Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(_conv(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
        self.second = nn.Sequential(_conv(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs))
        same = stride == 1 and inputs == outputs
        self.shortcut: nn.Module = (
            nn.Identity() if same else nn.Sequential(_conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
        )

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(self.second(self.first(images)) + self.shortcut(images))


def _conv(inputs: int, outputs: int, size: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)
