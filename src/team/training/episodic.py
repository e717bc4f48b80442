"""Episodic training (Eq. 1): the network learns on few-shot tasks drawn from the seen classes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F

from team.backbones import feature_dim
from team.backbones.statistics import episode_statistics
from team.data.images import ImageSet
from team.data.sampler import EpisodeSampler
from team.episode import Episode
from team.evaluation.embed import embed, evaluate_images, prototypes_by_class
from team.methods.network import NetworkMethod
from team.methods.team import TEAM
from team.mixing import draw_mixing, mix
from team.model import Model
from team.seeding import generator
from team.training.forward import Forward
from team.training.loop import Objective
from team.training.settings import EpisodicSettings, to_json


class EpisodicTraining(Objective):
    """The method's loss, for most the negative log-probability of the queries' labels, over the episodes of a step.

    Of images that are partitioned, support and queries are labelled ones, and the unlabelled set of an episode, which
    ``settings.unlabelled`` asks for, is drawn from the others.
    """

    name, unit = "training", "episodes"

    def __init__(
        self, model: Model, train: ImageSet, validation: ImageSet, settings: EpisodicSettings, *, compile: bool = False
    ) -> None:
        device = next(model.network.parameters()).device
        self.model, self.settings, self.validation = model, settings, validation
        self.train = train.to(device)
        self._support, self._queries = settings.ways * settings.shots, settings.ways * settings.queries
        if settings.unlabelled or settings.validation_unlabelled:
            model.method.check_semi_supervised()
        self.sampler = EpisodeSampler(
            train.labels,
            ways=settings.ways,
            shots=settings.shots,
            queries=settings.queries,
            unlabelled=settings.unlabelled,
            labelled=train.labelled,
        )
        EpisodeSampler(  # says at once, not at the first validation, if there are too few images
            validation.labels,
            ways=settings.validation_ways,
            shots=settings.shots,
            queries=settings.validation_queries,
            unlabelled=settings.validation_unlabelled,
        )
        self.device = device
        method, width = model.method, feature_dim(model.network, model.size)
        for ways in (settings.ways, settings.validation_ways):
            method.check_sizes(ways=ways, shots=settings.shots, dim=width)
        if isinstance(method, NetworkMethod):
            method.check_statistics(settings.statistics)
            if settings.seen_prototypes:
                raise ValueError(f"seen_prototypes are features, and {method.name} trains on images; switch them off")
        self.module = nn.ModuleDict({"network": model.network, "method": model.method.to(device)})
        self.running: _RunningPrototypes | None = None
        if settings.seen_prototypes:
            if self.sampler.class_count <= settings.ways:
                raise ValueError(
                    f"seen_prototypes needs training classes beside the {settings.ways} of an episode; "
                    f"there are {self.sampler.class_count}"
                )
            self.running = _RunningPrototypes(self._class_means())
            self.module["running"] = self.running
        self.forward = Forward(model.network, model.size, settings.augmentation, compile)
        self.per_step = settings.per_step
        self.steps = math.ceil(settings.episodes / settings.per_step)
        self.validate_every = max(1, settings.validate_every // settings.per_step)
        self.patience = max(1, settings.patience // settings.per_step)
        self.average = settings.average

    def optimiser(self) -> torch.optim.Optimizer:
        cuda = self.device.type == "cuda"
        rate = torch.tensor(self.settings.learning_rate, device=self.device) if cuda else self.settings.learning_rate
        parameters = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        if self.model.method.plain_descent:
            decay = self.settings.weight_decay
            return torch.optim.SGD(parameters, lr=rate, weight_decay=decay, fused=cuda or None)
        return torch.optim.AdamW(
            parameters, lr=rate, weight_decay=self.settings.weight_decay, capturable=cuda, fused=cuda or None
        )

    def begin(self) -> None:
        if self.model.method.log_temperature.requires_grad:
            self._calibrate_temperature()

    @torch.no_grad()
    def _calibrate_temperature(self) -> None:
        """Start at the temperature that suits the network's features, found on training episodes.

        Distances of an untrained metric may be a hundred times too large for a softmax; a learned temperature moves
        by about one learning rate per step and would spend the training on getting there. Episodes are embedded as
        training does it, augmented and normalised by themselves, without a trace in the running statistics.
        """
        random = generator(self.settings.seed, "calibration")
        forward = Forward(self.model.network, self.model.size, self.settings.augmentation, compile=False)
        drawn = self.sampler.sample(16, random)
        index = drawn.points
        self.model.network.train()
        parts = []
        with episode_statistics(self.model.network, index.shape[1]):
            for row in index:
                augmentation = self.settings.augmentation.draw(len(row), random).to(self.device)
                parts.append(forward(self.train.images[row.to(self.device)], augmentation))
        episode, answers = self._episode(torch.stack(parts))
        losses = {}
        for exponent in torch.arange(-4, 10, 0.25).tolist():
            self.model.method.log_temperature.fill_(exponent)
            scores = self.model.method.log_probabilities(episode)
            losses[exponent] = float(F.nll_loss(scores.flatten(0, 1), answers.flatten()))
        self.model.method.log_temperature.fill_(min(losses, key=losses.__getitem__))

    def learning_rate(self, step: int) -> float:
        settings, episode = self.settings, step * self.per_step
        if settings.schedule == "halving":
            return settings.learning_rate * 0.5 ** (episode // settings.halve_every)
        return settings.learning_rate * 0.5 * (1 + math.cos(math.pi * min(episode / settings.episodes, 1)))

    def draw(self, step: int) -> dict[str, Tensor]:
        settings = self.settings
        random = generator(settings.seed, "episode", step)
        drawn = self.sampler.sample(settings.per_step, random)
        index = drawn.points
        inputs = {"index": index, "augmentation": settings.augmentation.draw(index.numel(), random)}
        if self.model.method.mixing:
            inputs["partner"], inputs["weight"] = self._draw_mixing(step, index.shape, random)
        if settings.seen_prototypes:
            others = torch.ones(settings.per_step, self.sampler.class_count, dtype=torch.bool)
            others.scatter_(1, drawn.classes, False)
            inputs["others"] = others.nonzero()[:, 1].reshape(settings.per_step, -1)
        return inputs

    def _draw_mixing(self, step: int, shape: torch.Size, random: torch.Generator) -> tuple[Tensor, Tensor]:
        """Partner and weight of each sample ``[E, n]``; a sample that is not mixed keeps a weight of one."""
        partner = torch.arange(shape[1]).repeat(shape[0], 1)
        weight = torch.ones(shape)
        count = self._support if self.settings.mixed == "support" else self._support + self._queries
        low, high = self.settings.mixing_range
        partner[:, :count], weight[:, :count] = draw_mixing((shape[0], count), low, high, random)
        first = step * self.per_step
        active = torch.tensor([self.settings.mixing.active(first + number) for number in range(shape[0])])
        weight[~active] = 1.0
        return partner, weight

    def loss(self, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        method = self.model.method
        if isinstance(method, NetworkMethod):
            images = self.forward.inputs(self.train.images[inputs["index"].flatten()], inputs["augmentation"])
            episode, answers = self._episode(images.reshape(*inputs["index"].shape, *images.shape[1:]))
            loss, scores = method.adapted_loss(self.model.network, episode, answers)
        else:
            episode, answers = self._episode(self._features(inputs))
            loss, scores = method.loss(episode, answers)
        return loss, (scores.argmax(-1) == answers).double().mean()

    def _features(self, inputs: dict[str, Tensor]) -> Tensor:
        """Features of what was drawn ``[E, n, d]``; running class means follow them, those of other classes go in."""
        index, method = inputs["index"], self.model.method

        def blend(images: Tensor) -> Tensor:
            tasks = images.reshape(*index.shape, *images.shape[1:])
            return mix(tasks, inputs["partner"], inputs["weight"]).flatten(0, 1)

        pixels = self.train.images[index.flatten()]
        features = self.forward(pixels, inputs["augmentation"], blend if "partner" in inputs else None)
        features = features.reshape(*index.shape, -1)
        if self.running is not None:
            if isinstance(method, TEAM):
                method.settings = replace(method.settings, seen=self.running.prototypes[inputs["others"]])
            known = self._support + self._queries
            labels = self.train.labels[index[:, :known].flatten()]
            self.running.update(features[:, :known].detach().flatten(0, 1), labels)
        return features

    def _episode(self, points: Tensor) -> tuple[Episode, Tensor]:
        """Episodes of features or images ``[E, S + Q + U, ...]``, and the labels of their queries ``[E, Q]``."""
        settings, asked = self.settings, self._support + self._queries
        classes = torch.arange(settings.ways, device=points.device)
        labels = classes.repeat_interleave(settings.shots).expand(len(points), -1)
        answers = classes.repeat_interleave(settings.queries).expand(len(points), -1)
        unlabelled = points[:, asked:] if settings.unlabelled else None
        support, query = points[:, : self._support], points[:, self._support : asked]
        return Episode(support, labels, query, settings.ways, unlabelled), answers

    def validate(self) -> float:
        settings = self.settings
        self._fix_seen_prototypes()
        return evaluate_images(
            self.model.network,
            self.model.method,
            self.validation,
            ways=settings.validation_ways,
            shots=settings.shots,
            queries=settings.validation_queries,
            episodes=settings.validation_episodes,
            seed=1,
            statistics=settings.statistics,
            size=self.model.size,
            unlabelled=settings.validation_unlabelled,
        ).mean

    def _fix_seen_prototypes(self) -> None:
        """The mean feature of every training class under the present weights, for validation and for the checkpoint."""
        method = self.model.method
        if self.running is not None and isinstance(method, TEAM):
            self.model.seen_prototypes = self._class_means()
            method.settings = replace(method.settings, seen=self.model.seen_prototypes)

    def _class_means(self) -> Tensor:
        images = self.train.supervised()
        return prototypes_by_class(embed(self.model.network, images.images, size=self.model.size), images)

    def save(self, path: Path, facts: dict[str, Any]) -> None:
        self.model.info["training"] = {"settings": to_json(self.settings), "data": self.train.checksum, **facts}
        self.model.save(path)

    def identity(self) -> dict[str, Any]:
        about = self.model.description()
        del about["info"]
        return {"phase": "episodic", "settings": to_json(self.settings), "data": self.train.checksum, "model": about}


class _RunningPrototypes(nn.Module):
    """A running mean of the features of every training class, ``[T, d]``."""

    prototypes: Tensor

    def __init__(self, prototypes: Tensor, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("prototypes", prototypes)

    @torch.no_grad()
    def update(self, features: Tensor, labels: Tensor) -> None:
        """features: ``[n, d]``, labels: ``[n]``; classes that do not occur keep their mean."""
        membership = F.one_hot(labels, len(self.prototypes)).to(features)
        counts, sums = membership.sum(0), membership.T @ features
        if distributed.is_initialized():
            distributed.all_reduce(counts)
            distributed.all_reduce(sums)
        means = sums / counts.clamp_min(1)[:, None]
        step = self.momentum * (counts > 0).to(features)[:, None]
        self.prototypes += step * (means - self.prototypes)
