"""ResNet-18: He, Zhang, Ren and Sun, "Deep residual learning for image recognition", CVPR 2016."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from team.backbones.backbone import Backbone

Stem = Literal["large", "small"]


class ResNet18(Backbone):
    """images: ``[n, 3, H, W]`` (224×224 in the paper) -> features ``[n, 512]``; there is no last, classifying layer.

    mirror: average the features of each image and its mirror image at test, see :class:`Backbone`
    stem: "large" makes images four times smaller before the first block, as in the paper; "small", a 3×3 convolution
        that keeps their size, is what SimpleShot, TIM and others use for images of 84×84
    """

    dim = 512

    def __init__(self, *, mirror: bool = False, stem: Stem = "large") -> None:
        super().__init__(mirror)
        if stem not in get_args(Stem):
            raise ValueError(f"stem must be 'large' or 'small', not {stem!r}")
        large = stem == "large"
        first = _conv(3, 64, 7, 2) if large else _conv(3, 64, 3, 1)
        pool = [nn.MaxPool2d(3, stride=2, padding=1)] if large else []
        self.stem = nn.Sequential(first, nn.BatchNorm2d(64), nn.ReLU(inplace=True), *pool)
        self.stages = nn.Sequential(_stage(64, 64, 1), _stage(64, 128, 2), _stage(128, 256, 2), _stage(256, 512, 2))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, images: Tensor) -> Tensor:
        features: Tensor = self.stages(self.stem(images)).mean((-2, -1))
        return features


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
