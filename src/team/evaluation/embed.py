"""From images to features: every image once with running statistics, or every episode with its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from team.data.augment import normalise
from team.data.images import ImageSet
from team.data.sampler import EpisodeIndices, EpisodeSampler
from team.data.sampling import Sampling
from team.evaluation.evaluate import Evaluation, evaluate, run_episodes
from team.methods.base import Method

Statistics = Literal["running", "episode"]
"""What batch normalisation uses at test: the running statistics of training, or those of the episode itself (the
transductive "BN" of the paper's tables)."""


@torch.no_grad()
def embed(network: nn.Module, images: Tensor, *, size: int | None = None, batch: int = 512) -> Tensor:
    """Features float32 ``[n, d]`` of uint8 images ``[n, 3, H, W]``, on the network's device; size: its input's side."""
    device = _device(network)
    network.eval()
    parts = []
    for chunk in torch.split(images, batch):
        parts.append(_forward(network, chunk.to(device, non_blocking=True), size))
    return torch.cat(parts)


def by_class(features: Tensor, images: ImageSet) -> dict[str, Tensor]:
    """Features ``[n, d]`` of an image set, as ``{class: [n_c, d]}``."""
    labels = images.labels.to(features.device)
    return {name: features[labels == index] for index, name in enumerate(images.classes)}


def evaluate_images(
    network: nn.Module,
    method: Method,
    images: ImageSet,
    *,
    ways: int = 5,
    shots: int = 1,
    queries: int = 15,
    episodes: int = 1000,
    seed: int = 0,
    statistics: Statistics = "running",
    size: int | None = None,
    sampling: str = "balanced",
    concentration: float = 2.0,
    present: int | None = None,
) -> Evaluation:
    """Accuracy of a network and a method on episodes drawn from images; arguments are those of :func:`evaluate`.

    With running statistics every image is embedded once; with episode statistics every episode is embedded anew.
    """
    if statistics == "running":
        features = by_class(embed(network, images.images, size=size), images)
        return evaluate(
            method,
            features,
            ways=ways,
            shots=shots,
            queries=queries,
            episodes=episodes,
            seed=seed,
            sampling=sampling,
            concentration=concentration,
            present=present,
        )
    if statistics != "episode":
        raise ValueError(f"statistics must be 'running' or 'episode', not {statistics!r}")
    device = _device(network)
    network.eval()
    drawing = Sampling(sampling, concentration, present)
    sampler = EpisodeSampler(images.labels, ways=ways, shots=shots, queries=queries, sampling=drawing)
    points = ways * (shots + queries)
    batch = max(1, 2048 // points)
    pixels = images.images.to(device)

    def embed_episodes(drawn: EpisodeIndices) -> tuple[Tensor, Tensor]:
        index = torch.cat([drawn.support, drawn.query], 1)
        with episode_statistics(network, points):
            features = _forward(network, pixels[index.reshape(-1).to(device)], size)
        features = features.reshape(*index.shape, -1)
        return features[:, : ways * shots], features[:, ways * shots :]

    return run_episodes(method, embed_episodes, sampler, episodes=episodes, batch=batch, seed=seed, device=device)


@contextmanager
def episode_statistics(network: nn.Module, points: int) -> Iterator[None]:
    """Within this context, batch normalisation uses the statistics of each run of ``points`` images by itself."""
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


def _normalise_groups(layer: _BatchNorm, points: int, inputs: Tensor) -> Tensor:
    """Batch normalisation of ``[E·points, C, ...]`` with statistics over each group of points."""
    grouped = inputs.reshape(-1, points, *inputs.shape[1:]).transpose(0, 1)
    folded = grouped.reshape(points, -1, *inputs.shape[2:])  # [points, E·C, ...]: each group's channels stand apart
    groups = len(inputs) // points
    weight = None if layer.weight is None else layer.weight.repeat(groups)
    bias = None if layer.bias is None else layer.bias.repeat(groups)
    result = F.batch_norm(folded, None, None, weight, bias, training=True, eps=layer.eps)
    return result.reshape(grouped.shape).transpose(0, 1).reshape(inputs.shape)


def _forward(network: nn.Module, images: Tensor, size: int | None) -> Tensor:
    inputs = normalise(images, size).contiguous(memory_format=torch.channels_last)
    with torch.autocast("cuda", torch.bfloat16, enabled=inputs.device.type == "cuda"):
        features: Tensor = network(inputs)
    return features.float()


def _device(network: nn.Module) -> torch.device:
    return next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
