"""One column of the leaderboard: a trained network with a data set, from which methods get their features."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from team.data.glyphs import Part
from team.data.request import Request
from team.data.sampling import Sampling
from team.evaluation import Evaluation, evaluate, evaluate_images
from team.evaluation.embed import Precision, usual_precision
from team.evaluation.features import Features, cached_features
from team.leaderboard.settings import Setting, build, settings_of
from team.leaderboard.store import Outcome, kept
from team.methods import create_method
from team.methods.network import NetworkMethod
from team.model import Model, load_model
from team.provenance import file_checksum, hardware, source_checksum
from team.recipes.run import Runner

WAYS, QUERIES = 5, 15
_CODE = ("team.backbones", "team.evaluation.embed", "team.leaderboard.prepared")  # beside the method's own
TRAINING_IMAGES = 50  # of each training class; the mean of 64 times as many is known to within 2 % of a deviation


@dataclass(frozen=True)
class Protocol:
    """How episodes are drawn; 5 ways and 15 queries per class, as in the paper's tables."""

    shots: int
    sampling: Sampling
    episodes: int
    seed: int

    def options(self) -> dict[str, Any]:
        """As :func:`team.evaluate` takes them."""
        task = {"ways": WAYS, "shots": self.shots, "queries": QUERIES, "episodes": self.episodes, "seed": self.seed}
        return task | self.sampling.options()


@dataclass
class Bench:
    """Measures methods on the features of the model in ``weights``, whose data set is the runner's."""

    weights: Path
    runner: Runner
    precision: Precision | None = None
    _by_class: dict[str, dict[str, Tensor]] = field(default_factory=dict, repr=False)

    def tune(self, name: str, protocol: Protocol) -> Outcome:
        """The setting of a method with the best accuracy on validation classes; of equals, the better calibrated."""
        settings = settings_of(name)
        key = self._key("val", name, protocol) | {"settings": settings}

        def find() -> Outcome:
            scores = []
            for setting in settings:
                found = evaluate(build(name, setting, self.training_mean), self._features("val"), **protocol.options())
                scores.append((found.mean, -found.calibration_error))
            best = max(range(len(settings)), key=scores.__getitem__)
            mean, error = scores[best]
            chosen = {"setting": settings[best], "validation": round(mean, 4), "ece": round(-error, 4)}
            return chosen | {"tried": len(settings), "episodes": protocol.episodes, "weights": key["weights"]}

        return kept("tuning", key, find)

    def measure(self, name: str, setting: Setting | None, protocol: Protocol) -> Outcome:
        """Accuracy, calibration and speed of a method on test episodes, and the right answers in each episode.

        setting: None for the method as it was trained with the network
        """
        key = self._key("test", name, protocol) | {"setting": setting}
        if setting is None and self.fits_network():
            del key["device"], key["precision"]  # hours on a CPU: what a GPU measured will do there too
        return kept("cell", key, lambda: self._measure(name, setting, protocol))

    def fits_network(self) -> bool:
        """Whether the method the model was trained with fits the network to each episode: there are no features."""
        return isinstance(self._model.method, NetworkMethod)

    def _measure(self, name: str, setting: Setting | None, protocol: Protocol) -> Outcome:
        if setting is None and self._model.method_name != name:
            raise ValueError(f"{self.weights} was trained for {self._model.method_name}, not for {name}")
        method = self._model.method if setting is None else build(name, setting, self.training_mean)
        score: Callable[..., Evaluation]
        if setting is None and self.fits_network():
            network = self._model.network.to(self.runner.device)
            images, size = self.runner.images("test"), self._model.size
            score = partial(evaluate_images, network, method, images, size=size, statistics="episode")
        else:
            score = partial(evaluate, method, self._features("test"))
        score(**protocol.options() | {"episodes": 2})  # what is done once is not timed
        start = time.perf_counter()
        found = score(**protocol.options())
        seconds = time.perf_counter() - start
        return {
            "mean": round(found.mean, 4),
            "ci95": round(found.ci95, 4),
            "ece": round(found.calibration_error, 4),
            "episodes": protocol.episodes,
            "episodes_per_second": round(protocol.episodes / seconds, 2),
            "transductive": method.transductive,
            "hardware": hardware(self.runner.device),
            "right": (found.accuracies * (WAYS * QUERIES / 100)).round().long().tolist(),
        }

    @cached_property
    def _weights_checksum(self) -> str:
        return file_checksum(self.weights)

    @cached_property
    def _model(self) -> Model:
        return load_model(self.weights)

    @cached_property
    def training_mean(self) -> Tensor:
        """The mean feature of the training classes ``[d]``."""
        return self.features("train", TRAINING_IMAGES).mean()

    def _features(self, part: Part) -> dict[str, Tensor]:
        if part not in self._by_class:
            self._by_class[part] = self.features(part).by_class()
        return self._by_class[part]

    def features(self, part: Part, each: int | None = None) -> Features:
        """Features of a part of the data set, from the cache if they are there; each: see :func:`cached_features`."""
        images = partial(self.runner.images, part)
        device = self.runner.device
        return cached_features(
            self.weights, self._data(part), images, each=each, device=device, precision=self.precision
        )

    def _data(self, part: Part) -> str:
        """The checksum of a part of the data set, without reading its images if it is prepared."""
        recipe = self.runner.recipe
        request = Request.checked(
            recipe.dataset, part, self.runner.root, recipe.split, recipe.cache_size, True, recipe.encoding, None
        )
        index = request.index()
        return self.runner.images(part).checksum if index is None else index.checksum

    def _key(self, part: Part, name: str, protocol: Protocol) -> dict[str, Any]:
        return {
            "method": name,
            "weights": self._weights_checksum,
            "data": self._data(part),
            "training_data": self._data("train"),
            "protocol": protocol.options(),
            "device": torch.device(self.runner.device).type,
            "precision": self.precision or usual_precision(self.runner.device),
            "code": [source_checksum(module) for module in (type(create_method(name)).__module__, *_CODE)],
        }
