"""Batch normalisation by the images at hand: the transductive "BN" of the paper's tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def episode_statistics(network: nn.Module, points: int | None = None) -> Iterator[None]:
    """Within this context, batch normalisation uses the statistics of each run of ``points`` images by itself.

    Without ``points``, of all images of a call. Running statistics are neither used nor moved.
    """
    layers = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    before = [vars(layer).get("forward") for layer in layers]
    for layer in layers:
        layer.forward = partial(_normalise_groups, layer, points)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for layer, forward in zip(layers, before, strict=True):
            del layer.forward
            if forward is not None:
                layer.forward = forward  # type: ignore[method-assign]


def _normalise_groups(layer: _BatchNorm, points: int | None, inputs: Tensor) -> Tensor:
    """Batch normalisation of ``[E·points, C, ...]`` with statistics over each group of points."""
    points = points or len(inputs)
    grouped = inputs.reshape(-1, points, *inputs.shape[1:]).transpose(0, 1)
    folded = grouped.reshape(points, -1, *inputs.shape[2:])  # [points, E·C, ...]: each group's channels stand apart
    groups = len(inputs) // points
    weight = None if layer.weight is None else layer.weight.repeat(groups)
    bias = None if layer.bias is None else layer.bias.repeat(groups)
    # As F.batch_norm does, but one value for a channel, whose deviation is 0, is no error.
    result = torch.batch_norm(folded, weight, bias, None, None, True, 0.0, layer.eps, torch.backends.cudnn.enabled)
    return result.reshape(grouped.shape).transpose(0, 1).reshape(inputs.shape)
