"""From bytes to features inside a training step: augmentation, then the network in the device's best precision."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from team.data.augment import Augmentation


class Forward:
    """Augments uint8 images with drawn numbers and embeds them: bf16 on a GPU, float32 on a CPU."""

    def __init__(self, network: nn.Module, size: int, augmentation: Augmentation, compile: bool) -> None:
        self.size, self.augmentation = size, augmentation
        self.cuda = next(network.parameters()).device.type == "cuda"
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.network: Callable[[Tensor], Tensor] = torch.compile(network, dynamic=False) if compile else network

    def __call__(self, images: Tensor, drawn: Tensor, blend: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """images: uint8 ``[n, 3, H, W]``, drawn: ``[n, 7]`` -> float32 features ``[n, d]``; blend: applied before."""
        inputs = self.inputs(images, drawn)
        if blend is not None:
            inputs = blend(inputs)
        inputs = inputs.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.cuda):
            return self.network(inputs).float()

    def inputs(self, images: Tensor, drawn: Tensor) -> Tensor:
        """What the network takes, float32 ``[n, 3, size, size]``."""
        return self.augmentation.apply(images, drawn, self.size)
