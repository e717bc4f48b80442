"""Soft labels from a larger network: Hinton, Vinyals and Dean, "Distilling the knowledge in a neural network", 2015."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from team.backbones.backbone import Backbone
from team.data.augment import Augmentation
from team.data.images import ImageSet
from team.evaluation.embed import embed, prototypes_by_class
from team.training.forward import Forward


class Teacher:
    """How much a trained network finds each image to be of each training class.

    Scores are cosines between its centred features and the class means, divided by the temperature: a pre-trained
    model keeps no classifier, and the class means of the images it learned from are as good.
    """

    def __init__(
        self,
        network: nn.Module,
        size: int,
        train: ImageSet,
        augmentation: Augmentation,
        temperature: float,
        *,
        compile: bool = False,
    ) -> None:
        self.temperature = temperature
        network = network.to(train.images.device).eval()
        features = embed(network, train.images, size=size)
        self.centre = features.mean(0)
        self.directions = F.normalize(prototypes_by_class(features - self.centre, train), dim=-1)
        if isinstance(network, Backbone):
            network = copy(network)  # the weights stay the same
            # The learner sees one view of an image at a time, and so does its teacher.
            network.mirror = network.zoom = False
        self.forward = Forward(network, size, augmentation, compile)

    @torch.no_grad()
    def __call__(self, images: Tensor, drawn: Tensor, blend: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Probabilities ``[n, T]`` for uint8 images ``[n, 3, H, W]``, as the learner sees them."""
        features = F.normalize(self.forward(images, drawn, blend) - self.centre, dim=-1)
        return (features @ self.directions.T / self.temperature).softmax(-1)
