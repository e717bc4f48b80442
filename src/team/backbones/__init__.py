"""Networks that turn images into features, by name; any ``nn.Module`` of one's own will do as well."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from team.backbones.conv4 import Conv4
from team.backbones.resnet18 import ResNet18

_BACKBONES: dict[str, Callable[..., nn.Module]] = {"conv4": Conv4, "resnet18": ResNet18}
INPUT_SIZE = {"conv4": 84, "resnet18": 224}
"""The side of the square input each network has in the paper."""


def list_backbones() -> list[str]:
    """The names :func:`create_backbone` knows."""
    return sorted(_BACKBONES)


def create_backbone(name: str, **options: Any) -> nn.Module:
    """A new network; ``net.dim`` is the number of features it gives per image."""
    if name not in _BACKBONES:
        raise ValueError(f"no backbone is called {name!r}; there are {', '.join(list_backbones())}")
    known = list(inspect.signature(_BACKBONES[name]).parameters)
    if unknown := sorted(set(options) - set(known)):
        raise TypeError(f"{name} has no option {', '.join(unknown)}; it has {', '.join(known) or 'none'}")
    return _BACKBONES[name](**options)


def device_of(network: nn.Module) -> torch.device:
    """Where a network is, by the first of its tensors; one without any is on the CPU."""
    tensors = chain(network.parameters(), network.buffers())
    return next((tensor.device for tensor in tensors), torch.device("cpu"))


def feature_dim(network: nn.Module, size: int = 84) -> int:
    """``network.dim``, or, for a module without it, the width of what it gives for an image of this size."""
    if isinstance(dim := getattr(network, "dim", None), int):
        return dim
    parameter = next(network.parameters(), torch.empty(0))
    probe = copy.deepcopy(network).eval()
    with torch.no_grad():
        features = probe(torch.zeros(1, 3, size, size, device=parameter.device, dtype=parameter.dtype))
    if not isinstance(features, Tensor) or features.ndim != 2:
        shape = list(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise ValueError(f"a backbone must turn images [n, 3, H, W] into features [n, d]; this one gives {shape}")
    return features.shape[1]


__all__ = ["INPUT_SIZE", "Conv4", "ResNet18", "create_backbone", "device_of", "feature_dim", "list_backbones"]
