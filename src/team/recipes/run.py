"""Carrying out a recipe: pre-train once, train a cell, evaluate it, and write down what it gave."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from team.data import load
from team.data.images import ImageSet
from team.evaluation.embed import evaluate_images
from team.evaluation.evaluate import Evaluation
from team.model import Model, load_model
from team.recipes.recipe import Recipe, Variant
from team.training.episodic import EpisodicTraining
from team.training.loop import Outcome, train
from team.training.pretrain import Pretraining


@dataclass
class Runner:
    """Trains and evaluates cells of a recipe below ``folder``, with images from the cache (or from ``root``)."""

    recipe: Recipe
    folder: Path
    device: str = "cpu"
    root: Path | None = None
    compile: bool = False
    show: bool = True

    def images(self, part: str) -> ImageSet:
        recipe = self.recipe
        return load(
            recipe.dataset,
            part,
            root=self.root,
            split=recipe.split,
            size=recipe.stored_size or recipe.size,
            encoding=recipe.encoding,
        )

    def pretrained(self, train_set: ImageSet, validation: ImageSet) -> Path | None:
        """The pre-trained model, trained now if it is not there; None if the recipe starts from scratch."""
        if self.recipe.pretrain is None:
            return None
        folder = self.folder / f"{self.recipe.name}-pretrained"
        model = self._fresh({})
        objective = Pretraining(model, train_set, validation, self.recipe.pretrain, compile=self.compile)
        train(objective, folder, show=self.show)
        return folder / "best.safetensors"

    def train_cell(
        self,
        variant: Variant,
        shots: int,
        train_set: ImageSet,
        validation: ImageSet,
        *,
        time_limit: float | None = None,
    ) -> Outcome:
        """Train one cell, or go on with it; its model is then ``model_path(variant, shots)``."""
        model = self._fresh(self.recipe.method_options(variant))
        start = self.pretrained(train_set, validation)
        if start is not None:
            begun = load_model(start)
            model.network.load_state_dict(begun.network.state_dict())
            model.info["pretraining"] = begun.info["pretraining"]
        settings = self.recipe.settings(variant, shots)
        objective = EpisodicTraining(model, train_set, validation, settings, compile=self.compile)
        objective.name = self.recipe.cell(variant, shots)
        return train(objective, self.model_path(variant, shots).parent, time_limit=time_limit, show=self.show)

    def model_path(self, variant: Variant, shots: int) -> Path:
        return self.folder / self.recipe.cell(variant, shots) / "best.safetensors"

    def evaluate_cell(
        self, variant: Variant, shots: int, images: ImageSet, *, episodes: int = 1000, seed: int = 0
    ) -> Evaluation:
        model = load_model(self.model_path(variant, shots))
        settings = self.recipe.settings(variant, shots)
        return evaluate_images(
            model.network.to(self.device),
            model.method.to(self.device),
            images,
            ways=settings.validation_ways,
            shots=shots,
            queries=settings.validation_queries,
            episodes=episodes,
            seed=seed,
            statistics=settings.statistics,
            size=model.size,
        )

    def _fresh(self, options: dict[str, Any]) -> Model:
        """A model with weights drawn from the recipe's seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.recipe.episodic.seed)
            model = Model.create(self.recipe.backbone, "team", self.recipe.size, method_options=options)
        model.network.to(self.device)
        model.method.to(self.device)
        return model
