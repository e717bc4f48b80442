"""From images to features: every image once with running statistics, or every episode with its own."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from team.backbones import device_of, feature_dim
from team.backbones.backbone import Backbone
from team.backbones.fold import folded
from team.backbones.statistics import episode_statistics
from team.data.augment import normalise
from team.data.images import ImageSet
from team.data.sampler import EpisodeIndices, EpisodeSampler
from team.data.sampling import Sampling
from team.episode import class_means
from team.evaluation.evaluate import Evaluation, evaluate, run_episodes
from team.methods.base import Method
from team.methods.network import NetworkMethod

Statistics = Literal["running", "episode"]
"""What batch normalisation uses at test: the running statistics of training, or those of the episode itself (the
transductive "BN" of the paper's tables)."""

Precision = Literal["float32", "bfloat16"]
"""What the layers of a network are computed in; features are float32 in any case."""


@torch.no_grad()
def embed(
    network: nn.Module,
    images: Tensor,
    *,
    size: int | None = None,
    batch: int | None = None,
    precision: Precision | None = None,
) -> Tensor:
    """Features float32 ``[n, d]`` of uint8 images ``[n, 3, H, W]``, on the network's device; size: its input's side.

    batch: images at a time; None takes many on a GPU and few on a CPU, whose cache what is computed has to fit into
    precision: None takes :func:`usual_precision`
    """
    if precision is not None and precision not in get_args(Precision):
        raise ValueError(f"precision must be one of {', '.join(get_args(Precision))}, not {precision!r}")
    device = device_of(network)
    network.eval()
    if device.type == "cpu" and isinstance(network, Backbone):
        network = folded(network)  # of others' networks we do not know what else hangs on their layers
    batch = batch or (16 if device.type == "cpu" else 512)
    parts = []
    for chunk in torch.split(images, batch):
        parts.append(_forward(network, chunk.to(device, non_blocking=True), size, precision))
    return torch.cat(parts)


def usual_precision(device: torch.device | str) -> Precision:
    """bfloat16 on a GPU, float32 on a CPU: there bfloat16 pays only with instructions for it (AMX, AVX-512 BF16)."""
    return "bfloat16" if torch.device(device).type == "cuda" else "float32"


def by_class(features: Tensor, images: ImageSet) -> dict[str, Tensor]:
    """Features ``[n, d]`` of an image set, as ``{class: [n_c, d]}``."""
    labels = images.labels.to(features.device)
    return {name: features[labels == index] for index, name in enumerate(images.classes)}


def prototypes_by_class(features: Tensor, images: ImageSet) -> Tensor:
    """The mean feature of every class of an image set ``[C, d]``, from its features ``[n, d]``."""
    membership = F.one_hot(images.labels.to(features.device), len(images.classes)).to(features)
    return class_means(features[None], membership[None])[0]


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
    unlabelled: int = 0,
) -> Evaluation:
    """Accuracy of a network and a method on episodes drawn from images; arguments are those of :func:`evaluate`.

    With running statistics every image is embedded once; with episode statistics every episode is embedded anew. A
    method that fits the network itself to each episode takes episode statistics.
    """
    adapts = isinstance(method, NetworkMethod)
    if isinstance(method, NetworkMethod):
        method.check_statistics(statistics)
        method.check_sizes(ways=ways, shots=shots, dim=feature_dim(network, size or images.images.shape[-1]))
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
            unlabelled=unlabelled,
        )
    if statistics != "episode":
        raise ValueError(f"statistics must be 'running' or 'episode', not {statistics!r}")
    device = device_of(network)
    network.eval()
    drawing = Sampling(sampling, concentration, present)
    sampler = EpisodeSampler(
        images.labels, ways=ways, shots=shots, queries=queries, sampling=drawing, unlabelled=unlabelled
    )
    support, asked = ways * shots, ways * (shots + queries)
    points = asked + ways * unlabelled
    batch = max(1, (512 if adapts else 2048) // points)  # to fit weights keeps what a pass computed
    pixels = images.images.to(device)

    def split(points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return points[:, :support], points[:, support:asked], points[:, asked:]

    def episode_images(drawn: EpisodeIndices) -> tuple[Tensor, Tensor, Tensor]:
        inputs = _inputs(pixels[drawn.points.reshape(-1).to(device)], size)
        return split(inputs.reshape(*drawn.points.shape, *inputs.shape[1:]))

    def embed_episodes(drawn: EpisodeIndices) -> tuple[Tensor, Tensor, Tensor]:
        with episode_statistics(network, points):
            features = _forward(network, pixels[drawn.points.reshape(-1).to(device)], size)
        return split(features.reshape(*drawn.points.shape, -1))

    return run_episodes(
        method,
        episode_images if adapts else embed_episodes,
        sampler,
        episodes=episodes,
        batch=batch,
        seed=seed,
        device=device,
        network=network,
    )


def _inputs(images: Tensor, size: int | None) -> Tensor:
    return normalise(images, size).contiguous(memory_format=torch.channels_last)


def _forward(network: nn.Module, images: Tensor, size: int | None, precision: Precision | None = None) -> Tensor:
    inputs = _inputs(images, size)
    precision = precision or usual_precision(inputs.device)
    with torch.autocast(inputs.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        features: Tensor = network(inputs)
    return features.float()
