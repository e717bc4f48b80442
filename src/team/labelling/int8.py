"""EfficientNet-Lite0 in bytes: weights and activations of eight bits, in less than half the time of floats.

No pictures are needed to choose the scales. Batch normalisation says how every channel is distributed over ImageNet:
with mean β and standard deviation γ (Nagel et al., "Data-free quantization through weight equalization and bias
correction", ICCV 2019). From this follow the range each tensor needs and, by the same paper's bias correction, what
rounding the weights adds to a layer's mean, which its bias takes away again.

The module here computes with whole numbers held in floats, on any device; :mod:`team.labelling.int8_onnx` writes it for
ONNX Runtime, which computes the same with bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_DEVIATIONS = 5.0  # from its mean that a tensor's range reaches: what lies beyond is clipped
_LARGEST_BIAS = float(1 << 30)


@dataclass(frozen=True)
class Grid:
    """What the bytes of a tensor stand for: scale · (byte - zero)."""

    scale: float
    zero: int

    @classmethod
    def over(cls, low: float, high: float) -> Grid:
        low, high = min(low, 0.0), max(high, 0.0)
        scale = (high - low) / 255
        return cls(scale, round(-low / scale))


@dataclass(frozen=True, eq=False)
class Spread:
    """How a tensor is distributed, per channel: mean ``[c]``, variance ``[c]``."""

    mean: Tensor
    variance: Tensor

    def grid(self) -> Grid:
        reach = _DEVIATIONS * self.variance.sqrt()
        return Grid.over(float((self.mean - reach).min()), float((self.mean + reach).max()))

    def after_relu6(self) -> Spread:
        """Of min(max(x, 0), 6), x normal: its mean exactly; its variance is nowhere needed, and is left as it was."""
        deviation = self.variance.sqrt().clamp_min(1e-6)
        low, high = -self.mean / deviation, (6 - self.mean) / deviation
        inside = self.mean * (torch.special.ndtr(high) - torch.special.ndtr(low))
        inside = inside + deviation * (_density(low) - _density(high))
        return Spread(inside + 6 * torch.special.ndtr(-high), self.variance)


def _density(x: Tensor) -> Tensor:
    """Of the normal distribution."""
    return (-x.square() / 2).exp() / math.sqrt(2 * math.pi)


class Int8Conv(nn.Module):
    """A convolution with its batch normalisation and ReLU6, from bytes on one grid to bytes on another.

    Rounding to the outgoing grid is the ReLU6: that grid ends at 0 and at 6.
    """

    weight: Tensor
    bias: Tensor
    weight_scale: Tensor

    @torch.no_grad()
    def __init__(self, conv: Any, norm: nn.BatchNorm2d, inputs: Spread, incoming: Grid, *, relu6: bool) -> None:
        super().__init__()
        assert norm.running_mean is not None
        assert norm.running_var is not None
        gain = norm.weight / (norm.running_var + norm.eps).sqrt()
        weight, bias = conv.weight * gain[:, None, None, None], norm.bias - norm.running_mean * gain
        # A channel that is all but dead has tiny weights, in whose units its bias would not fit into 32 bits.
        scale = torch.maximum(weight.abs().amax((1, 2, 3)) / 127, bias.abs() / (incoming.scale * _LARGEST_BIAS))
        scale = scale.clamp_min(1e-12)
        whole = (weight / scale[:, None, None, None]).round()
        lost = (weight - whole * scale[:, None, None, None]).sum((2, 3))
        bias = bias + (lost[:, 0] * inputs.mean if conv.groups > 1 else lost @ inputs.mean)
        self.outputs = Spread(norm.bias.detach(), norm.weight.detach().square())
        self.incoming, self.outgoing = incoming, self.outputs.grid()
        if relu6:
            self.outputs, self.outgoing = self.outputs.after_relu6(), Grid.over(0.0, 6.0)
        self.register_buffer("weight", whole.to(torch.int8))
        self.register_buffer("bias", (bias / (scale * incoming.scale)).round().to(torch.int32))
        self.register_buffer("weight_scale", scale)
        self.stride, self.groups = tuple(conv.stride), int(conv.groups)
        left, right, top, bottom = getattr(conv.static_padding, "padding", (0, 0, 0, 0))
        self.padding: tuple[int, int, int, int] = (left, right, top, bottom)

    def forward(self, values: Tensor) -> Tensor:
        """Bytes, in floats, to bytes, in floats."""
        centred = F.pad(values - self.incoming.zero, self.padding)
        sums = F.conv2d(centred, self.weight.float(), self.bias.float(), self.stride, groups=self.groups)
        factor = self.incoming.scale * self.weight_scale / self.outgoing.scale
        return ((sums * factor[:, None, None]).round() + self.outgoing.zero).clamp(0, 255)


class Int8Block(nn.Module):
    """Convolutions one after the other; ``skip``: what they start from is added to what they end with."""

    def __init__(self, convs: Sequence[Int8Conv], inputs: Spread, *, skip: bool) -> None:
        super().__init__()
        self.convs, self.skip = nn.ModuleList(convs), skip
        self.incoming, self.inner = convs[0].incoming, convs[-1].outgoing
        self.outputs, self.outgoing = convs[-1].outputs, self.inner
        if skip:
            ends = self.outputs
            self.outputs = Spread(inputs.mean + ends.mean, inputs.variance + ends.variance)
            self.outgoing = self.outputs.grid()

    def forward(self, values: Tensor) -> Tensor:
        start = values
        for conv in self.convs:
            values = conv(values)
        if not self.skip:
            return values
        sums = (values - self.inner.zero) * self.inner.scale + (start - self.incoming.zero) * self.incoming.scale
        return ((sums / self.outgoing.scale).round() + self.outgoing.zero).clamp(0, 255)


class Int8Network(nn.Module):
    """network: an EfficientNet-Lite; grid: on which pixels are bytes; mean: of its inputs over ImageNet, ``[3]``

    float images ``[n, 3, h, w]`` -> features ``[n, dim]``, averaged over the picture.
    """

    grids: Tensor

    def __init__(self, network: Any, grid: Grid, mean: Tensor) -> None:
        super().__init__()
        inputs = Spread(mean, torch.zeros(3))
        stem = Int8Conv(network._conv_stem, network._bn0, inputs, grid, relu6=True)
        self.blocks = nn.ModuleList([Int8Block([stem], inputs, skip=False)])
        for block in network._blocks:
            self._append(_convolutions(block), _skips(block))
        self._append([(network._conv_head, network._bn1, True)], skip=False)
        self.grid, self.dim = grid, int(network._conv_head.out_channels)
        grids = [module.outgoing for module in self.modules() if isinstance(module, (Int8Conv, Int8Block))]
        table = [(each.scale, float(each.zero)) for each in [grid, *grids]]
        self.register_buffer("grids", torch.tensor(table))  # part of the state, since features depend on them

    def _append(self, layers: list[tuple[Any, nn.BatchNorm2d, bool]], skip: bool) -> None:
        before: Any = self.blocks[-1]
        spread, grid = before.outputs, before.outgoing
        convs: list[Int8Conv] = []
        for conv, norm, relu6 in layers:
            convs.append(Int8Conv(conv, norm, spread, grid, relu6=relu6))
            spread, grid = convs[-1].outputs, convs[-1].outgoing
        self.blocks.append(Int8Block(convs, before.outputs, skip=skip))

    def forward(self, images: Tensor) -> Tensor:
        values = (images / self.grid.scale + self.grid.zero).round()
        for block in self.blocks:
            values = block(values)
        last: Any = self.blocks[-1]
        features: Tensor = (values - last.outgoing.zero).mean((-2, -1)) * last.outgoing.scale
        return features


def _convolutions(block: Any) -> list[tuple[Any, nn.BatchNorm2d, bool]]:
    """(convolution, normalisation, whether ReLU6 follows) of an inverted bottleneck."""
    expanding = [(block._expand_conv, block._bn0, True)] if hasattr(block, "_expand_conv") else []
    return [*expanding, (block._depthwise_conv, block._bn1, True), (block._project_conv, block._bn2, False)]


def _skips(block: Any) -> bool:
    same = block._project_conv.out_channels == block._block_args.input_filters
    return bool(block.id_skip and same and tuple(block._depthwise_conv.stride) == (1, 1))
