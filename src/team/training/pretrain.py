"""Pre-training: the network learns to tell all seen classes apart, which gives episodic training its start."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from team.backbones import feature_dim
from team.data.images import ImageSet
from team.data.sampler import EpisodeSampler
from team.evaluation.embed import by_class, embed
from team.evaluation.evaluate import evaluate
from team.methods import create_method
from team.model import Model
from team.seeding import generator
from team.training.forward import Forward
from team.training.loop import Objective
from team.training.mixup import blend, draw_parts
from team.training.rotation import QUARTERS, rotation_loss, with_turned
from team.training.settings import PretrainSettings, to_json
from team.training.teacher import Teacher


class Pretraining(Objective):
    """Cross-entropy over the training classes with a linear layer, which is thrown away afterwards.

    Where ``settings.rotation`` asks for it, a second such layer tells how far a turned copy of each image is turned;
    where ``settings.mixup`` does, images are blended with one another before.

    Of images that are partitioned, only the labelled ones are used.
    teacher: a model trained on the same classes, whose soft labels count as ``settings.teaching`` says
    """

    name, unit = "pre-training", "images"
    patience = None

    def __init__(
        self,
        model: Model,
        train: ImageSet,
        validation: ImageSet,
        settings: PretrainSettings,
        *,
        teacher: Model | None = None,
        compile: bool = False,
    ) -> None:
        if (settings.teaching > 0) != (teacher is not None):
            raise ValueError("a teacher and the share it has in the loss, settings.teaching, go together")
        device = next(model.network.parameters()).device
        train, validation = train.supervised(), validation.supervised()
        self.model, self.settings, self.validation = model, settings, validation
        self.train = train.to(device)
        # Says at once, not at the first validation, if there are too few images.
        EpisodeSampler(validation.labels, ways=min(5, len(validation.classes)), shots=1, queries=15)
        self.module = nn.ModuleDict({"network": model.network})
        self.module["classifier"] = self._layer("classifier", len(train.classes)).to(device)
        if settings.rotation > 0:
            self.module["rotation"] = self._layer("rotation", QUARTERS).to(device)
        self.forward = Forward(model.network, model.size, settings.augmentation, compile)
        self.teacher: Teacher | None = None
        if teacher is not None:
            self.teacher = Teacher(
                teacher.network,
                teacher.size,
                self.train,
                settings.augmentation,
                settings.teacher_temperature,
                compile=compile,
            )
        self.taught_by = None if teacher is None else teacher.description()
        self.per_step = min(settings.batch, len(train))
        self.steps_per_epoch = len(train) // self.per_step
        self.steps = settings.epochs * self.steps_per_epoch
        self.validate_every = max(1, math.ceil(self.steps / settings.validations))
        self.average = settings.average
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int64)

    def _layer(self, name: str, outputs: int) -> nn.Linear:
        width = feature_dim(self.model.network, self.model.size)
        layer = nn.Linear(width, outputs)
        nn.init.zeros_(layer.bias)
        with torch.no_grad():
            drawn = torch.randn(layer.weight.shape, generator=generator(self.settings.seed, name))
            layer.weight.copy_(drawn / math.sqrt(width))
        return layer

    def optimiser(self) -> torch.optim.Optimizer:
        decay = [p for p in self.module.parameters() if p.ndim > 1]
        plain = [p for p in self.module.parameters() if p.ndim <= 1]
        groups = [{"params": decay, "weight_decay": self.settings.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        cuda = self.train.images.device.type == "cuda"
        rate = torch.tensor(self.settings.learning_rate, device="cuda") if cuda else self.settings.learning_rate
        return torch.optim.SGD(groups, lr=rate, momentum=0.9, nesterov=True, fused=cuda or None)

    def learning_rate(self, step: int) -> float:
        rise = 0.1
        done = (step + 1) / self.steps
        share = done / rise if done < rise else 0.5 * (1 + math.cos(math.pi * (done - rise) / (1 - rise)))
        return self.settings.learning_rate * share

    def draw(self, step: int) -> dict[str, Tensor]:
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = torch.randperm(len(self.train), generator=generator(self.settings.seed, "epoch", epoch))
        index = self._order[position * self.per_step : (position + 1) * self.per_step]
        random = generator(self.settings.seed, "pretrain", step)
        inputs = {"index": index, "augmentation": self.settings.augmentation.draw(len(index), random)}
        if self.settings.rotation > 0:
            inputs["quarters"] = torch.randint(1, QUARTERS, (len(index),), generator=random)
        if self.settings.mixup > 0:
            inputs["parts"] = draw_parts(len(index), self.settings.mixup, random)
        return inputs

    def loss(self, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        images, labels = self.train.images[inputs["index"]], self.train.labels[inputs["index"]]
        quarters, parts = inputs.get("quarters"), inputs.get("parts")
        mix = None if parts is None else partial(blend, parts=parts)

        def seen(pixels: Tensor) -> Tensor:
            pixels = pixels if mix is None else mix(pixels)
            return pixels if quarters is None else with_turned(pixels, quarters)

        features = self.forward(images, inputs["augmentation"], seen)
        scores = self.module["classifier"](features[: len(images)])
        truth = labels if mix is None else mix(F.one_hot(labels, scores.shape[-1]).to(scores))
        loss = F.cross_entropy(scores, truth, label_smoothing=self.settings.label_smoothing)
        if self.teacher is not None:
            taught = F.cross_entropy(scores, self.teacher(images, inputs["augmentation"], mix))
            loss = torch.lerp(loss, taught, self.settings.teaching)
        if quarters is not None:
            loss = loss + self.settings.rotation * rotation_loss(self.module["rotation"](features), quarters)
        return loss, (scores.argmax(-1) == labels).double().mean()

    def validate(self) -> float:
        """Cosine nearest prototype, 1-shot: what a good starting point for any metric should do well."""
        settings = self.settings
        features = F.normalize(embed(self.model.network, self.validation.images, size=self.model.size), dim=-1)
        classes = by_class(features, self.validation)
        method = create_method("protonet")
        return evaluate(method, classes, ways=min(5, len(classes)), episodes=settings.validation_episodes, seed=1).mean

    def save(self, path: Path, facts: dict[str, Any]) -> None:
        about = {"settings": to_json(self.settings), "data": self.train.checksum, **facts}
        if self.taught_by is not None:
            about["teacher"] = self.taught_by
        self.model.info["pretraining"] = about
        self.model.save(path)

    def identity(self) -> dict[str, Any]:
        about = self.model.description()
        del about["info"]
        identity = {"phase": "pretraining", "settings": to_json(self.settings), "data": self.train.checksum}
        return identity | {"model": about, "teacher": self.taught_by}
