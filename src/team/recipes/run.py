"""Carrying out a recipe: pre-train once, train a cell, choose what is left on the validation classes, evaluate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from team.data import load
from team.data.images import ImageSet
from team.data.sampling import BALANCED, Sampling
from team.evaluation.embed import by_class, embed, evaluate_images
from team.evaluation.evaluate import Evaluation, evaluate
from team.model import Model, load_model
from team.provenance import commit, hardware
from team.recipes.recipe import Recipe, Variant
from team.results import Result, describe, write_result
from team.training.distributed import World
from team.training.episodic import EpisodicTraining
from team.training.loop import Outcome, train
from team.training.pretrain import Pretraining

_TEMPERATURES = (0.5, 1.0, 2.0, 4.0, 8.0)  # times the learned one


@dataclass
class Runner:
    """Trains and evaluates cells of a recipe below ``folder``, with images from the cache (or from ``root``)."""

    recipe: Recipe
    folder: Path
    device: str = "cpu"
    root: Path | None = None
    compile: bool = False
    show: bool = True
    world: World = field(default_factory=World)
    _loaded: dict[str, ImageSet] = field(default_factory=dict, repr=False)

    def images(self, part: str) -> ImageSet:
        """One part of the data set, on the device; the test part is read by nothing but the final evaluation."""
        recipe = self.recipe
        if part not in self._loaded:
            size = recipe.stored_size or recipe.size
            images = load(recipe.dataset, part, root=self.root, split=recipe.split, size=size, encoding=recipe.encoding)
            self._loaded[part] = images.to(self.device)
        return self._loaded[part]

    def model_path(self, variant: Variant, shots: int) -> Path:
        return self.folder / self.recipe.cell(variant, shots) / "model.safetensors"

    def pretrained(self) -> Path | None:
        """The pre-trained model, trained now if it is not there; None if the recipe starts from scratch."""
        if self.recipe.pretrain is None:
            return None
        folder = self.folder / f"{self.recipe.name}-pretrained"
        objective = Pretraining(
            self._fresh({}), self.images("train"), self.images("val"), self.recipe.pretrain, compile=self.compile
        )
        train(objective, folder, show=self.show, world=self.world)
        return folder / "best.safetensors"

    def train_cell(self, variant: Variant, shots: int, *, time_limit: float | None = None) -> Outcome:
        """Train one cell, or go on with it, and leave its model in ``model_path(variant, shots)``."""
        model = self._fresh(self.recipe.method_options(variant))
        start = self.pretrained()
        if start is not None:
            model.start_from(start)
        settings = self.recipe.settings(variant, shots)
        objective = EpisodicTraining(model, self.images("train"), self.images("val"), settings, compile=self.compile)
        objective.name = self.recipe.cell(variant, shots)
        folder = self.model_path(variant, shots).parent
        outcome = train(objective, folder, time_limit=time_limit, show=self.show, world=self.world)
        if self.world.first:
            self.finish(load_model(folder / "best.safetensors"), variant, shots)
        return outcome

    def finish(self, model: Model, variant: Variant, shots: int) -> Model:
        """Choose the temperature on the validation classes, where it matters, and save the model of the cell.

        Only the product of both directions depends on it; without that, the order of classes does not.
        """
        model.info["variant"] = variant
        model.info["recipe"] = self.recipe.name
        if model.method_options.get("bidirectional", True):
            learned = float(model.method.temperature.detach())
            score = self._scorer(model, self.images("val"), variant, shots, 2000, 2)
            tried = {}
            for scale in _TEMPERATURES:
                _set_temperature(model, scale * learned)
                tried[scale] = score().mean
            chosen = max(tried, key=tried.__getitem__)
            _set_temperature(model, chosen * learned)
            model.info["temperature"] = {"learned": learned, "chosen": chosen * learned, "validation": tried}
        model.save(self.model_path(variant, shots))
        return model

    def evaluate_cell(
        self,
        model: Model,
        variant: Variant,
        shots: int,
        results: Path | None,
        *,
        episodes: int = 1000,
        seed: int = 0,
        sampling: Sampling = BALANCED,
    ) -> Result:
        """The final figure of a cell on test episodes, with all that led to it; written to ``results`` if given."""
        evaluation = self._scorer(model, self.images("test"), variant, shots, episodes, seed, sampling)()
        recipe, training = self.recipe, model.info.get("training", {})
        cell = recipe.cell(variant, shots)
        if sampling != BALANCED:  # another figure, which must not take the place of the table's
            cell += f"-{sampling}".replace(" ", "-")
        facts: dict[str, Any] = {
            "cell": cell,
            "dataset": recipe.dataset,
            "split": recipe.split,
            "backbone": recipe.backbone,
            "method": variant,
            "recipe": recipe.name,
            "input": f"{recipe.size}×{recipe.size}" + (", bounding boxes cropped" if recipe.dataset == "cub" else ""),
            "batch_normalisation": recipe.settings(variant, shots).statistics,
            "method_options": model.method_options,
            "temperature": float(model.method.temperature.detach()),
            "chosen_on": "validation classes",
            "validation_accuracy": training.get("validation_accuracy"),
            "seed": recipe.episodic.seed,
            "settings": {
                "pretraining": model.info.get("pretraining", {}).get("settings"),
                "training": training.get("settings"),
            },
            "data": {"train": training.get("data"), "test": self.images("test").checksum},
            "commit": {"training": training.get("commit", ""), "evaluation": commit()},
            "hardware": {"training": training.get("hardware", ""), "evaluation": hardware(self.device)},
            "training_seconds": {
                "pretraining": model.info.get("pretraining", {}).get("seconds"),
                "training": training.get("seconds"),
            },
        }
        result = describe(facts, evaluation)
        if results is not None:
            write_result(results, result, evaluation)
        return result

    def _scorer(
        self,
        model: Model,
        images: ImageSet,
        variant: Variant,
        shots: int,
        episodes: int,
        seed: int,
        sampling: Sampling = BALANCED,
    ) -> Callable[[], Evaluation]:
        """A function that evaluates the model as it then is; with running statistics images are embedded only once."""
        settings = self.recipe.settings(variant, shots)
        network, method = model.network.to(self.device), model.method.to(self.device)
        task: dict[str, Any] = {
            "ways": settings.validation_ways,
            "shots": shots,
            "queries": settings.validation_queries,
            "episodes": episodes,
            "seed": seed,
        } | sampling.options()
        if settings.statistics == "episode":
            return lambda: evaluate_images(network, method, images, statistics="episode", size=model.size, **task)
        features = by_class(embed(network, images.images, size=model.size), images)
        return lambda: evaluate(method, features, **task)

    def _fresh(self, options: dict[str, Any]) -> Model:
        """A model with weights drawn from the recipe's seed."""
        recipe = self.recipe
        model = Model.create(recipe.backbone, "team", recipe.size, method_options=options, seed=recipe.episodic.seed)
        model.network.to(self.device)
        model.method.to(self.device)
        return model


@torch.no_grad()
def _set_temperature(model: Model, value: float) -> None:
    model.method.log_temperature.fill_(math.log(value))
