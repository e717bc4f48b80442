"""Carrying out a recipe: pre-train once, train a cell, choose what is left on the validation classes, evaluate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from team.data import load
from team.data.glyphs import Part, load_glyphs
from team.data.images import ImageSet
from team.data.sampling import BALANCED, Sampling
from team.evaluation.embed import by_class, embed, evaluate_images
from team.evaluation.evaluate import Evaluation, evaluate
from team.evaluation.features import cached_features
from team.model import Model, average_models, load_model
from team.recipes.facts import cell_facts
from team.recipes.recipe import Recipe, Variant
from team.results import Result, describe, write_result
from team.training.checkpoint import CheckpointError
from team.training.distributed import World
from team.training.episodic import EpisodicTraining
from team.training.loop import Outcome, train
from team.training.pretrain import Pretraining
from team.training.settings import PretrainSettings

_TEMPERATURES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # times the learned one


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
    pretrained: Path | None = None
    """A model, pre-trained on the same images, to start cells from, in place of the recipe's pre-training."""
    _loaded: dict[str, ImageSet] = field(default_factory=dict, repr=False)
    _pretraining: Outcome | None = field(default=None, init=False, repr=False)

    def partition(self, number: int) -> Runner:
        """What trains and evaluates one partition, with the images that are loaded already."""
        if self.recipe.partitions == 1:
            return self
        return replace(self, recipe=self.recipe.partition(number), folder=self.folder / f"partition-{number}")

    def images(self, part: Part) -> ImageSet:
        """One part of the data set, on the device; the test part is read by nothing but the final evaluation."""
        recipe = self.recipe
        if part not in self._loaded:
            size = recipe.cache_size
            if recipe.dataset == "glyphs":
                images = load_glyphs(part, size=size)
            else:
                images = load(
                    recipe.dataset, part, root=self.root, split=recipe.split, size=size, encoding=recipe.encoding
                )
            self._loaded[part] = images.to(self.device)
        if part == "train" and recipe.labelled is not None:
            return self._loaded[part].partitioned(recipe.labelled, recipe.episodic.seed)
        return self._loaded[part]

    def model_path(self, variant: Variant, shots: int) -> Path:
        return self.folder / self.recipe.cell(variant, shots) / "model.safetensors"

    @property
    def pretrained_path(self) -> Path:
        if self.pretrained is not None:
            return self.pretrained
        return self.folder / f"{(self.recipe.start or self.recipe).name}-pretrained" / "best.safetensors"

    def pretrain(self, settings: PretrainSettings, *, time_limit: float | None = None) -> Outcome:
        """Pre-train, after the teacher if there is one, or go on with it: the model is in ``pretrained_path``.

        Where the recipe starts from the network of another one, that one is pre-trained.
        """
        if self._pretraining is not None:
            return self._pretraining
        recipe, teacher = self.recipe, None
        source = recipe.start or recipe.teacher
        if source is not None and source.pretrain is not None:
            school = replace(self, recipe=source, _loaded={})
            outcome = school.pretrain(source.pretrain, time_limit=time_limit)
            if recipe.start is not None or not outcome.complete:
                return self._remember(outcome)
            teacher = load_model(school.pretrained_path)
        objective = Pretraining(
            self._fresh(), self.images("train"), self.images("val"), settings, teacher=teacher, compile=self.compile
        )
        folder = self.pretrained_path.parent
        outcome = train(objective, folder, time_limit=time_limit, show=self.show, world=self.world)
        return self._remember(outcome)

    def _remember(self, pretraining: Outcome) -> Outcome:
        """Keep the outcome of a complete pre-training for the other cells."""
        self._pretraining = pretraining if pretraining.complete else None
        return pretraining

    def train_cell(self, variant: Variant, shots: int, *, time_limit: float | None = None) -> Outcome:
        """Train one cell, or go on with it, and leave its model in ``model_path(variant, shots)``.

        Where the recipe asks for several trainings, the model is their mean, and ``outcome.best`` its accuracy.
        Pre-training, which all cells share, comes first where it is not done yet. If the time limit (seconds) ends
        either, the outcome is not complete, and the model is left for another time.
        """
        began, left = time.monotonic(), time_limit
        if self.pretrained is not None:
            self._check_pretrained(self.pretrained)
        elif self.recipe.pretrain is not None:
            outcome = self.pretrain(self.recipe.pretrain, time_limit=time_limit)
            if not outcome.complete:
                return outcome
        folder, count = self.model_path(variant, shots).parent, self.recipe.members
        folders = [folder] if count == 1 else [folder / f"member-{number}" for number in range(count)]
        for number, place in enumerate(folders):
            if time_limit is not None:
                left = time_limit - (time.monotonic() - began)
            outcome = self._train_member(variant, shots, number, place, left)
            if not outcome.complete:
                return outcome
        if self.world.first:
            best = [load_model(place / "best.safetensors") for place in folders]
            model = best[0] if count == 1 else average_models(best)
            if self.recipe.at_test:
                model = model.with_backbone_options(self.recipe.at_test)
            made = _finished(self.model_path(variant, shots), model)
            if made is None:
                if count > 1 or self.recipe.at_test:
                    self._describe_changed(model, variant, shots)
                made = self.finish(model, variant, shots)
            outcome.best = made.info["training"]["validation_accuracy"]
        return outcome

    def _check_pretrained(self, path: Path) -> None:
        """Raise unless this model was pre-trained on the recipe's training images, and neither on others nor further.

        Others may be test images here, and of what came later the new model would not tell.
        """
        about = load_model(path).info
        if about.get("pretraining", {}).get("data") != self.images("train").checksum:
            raise ValueError(
                f"{path} was pre-trained on other images than the training classes of {self.recipe.name}; "
                "give a model of this data set and split"
            )
        if "training" in about:
            raise ValueError(f"{path} was trained on episodes already; give a model that was only pre-trained")

    def _train_member(
        self, variant: Variant, shots: int, number: int, folder: Path, time_limit: float | None
    ) -> Outcome:
        """One training of a cell, in a folder of its own."""
        model = self._fresh(variant)
        if self.recipe.pretrain is not None or self.pretrained is not None:
            model.start_from(self.pretrained_path)
        settings = self.recipe.settings(variant, shots)
        settings = replace(settings, seed=settings.seed + number)
        objective = EpisodicTraining(model, self.images("train"), self.images("val"), settings, compile=self.compile)
        objective.name = self.recipe.cell(variant, shots) + (f", member {number}" if self.recipe.members > 1 else "")
        return train(objective, folder, time_limit=time_limit, show=self.show, world=self.world)

    def _describe_changed(self, model: Model, variant: Variant, shots: int) -> None:
        """Put the model's own accuracy, and the time of all its trainings, in the place of those of the first."""
        episodes = self.recipe.settings(variant, shots).validation_episodes
        score = self._scorer(model, self.images("val"), variant, shots, episodes, 1)
        trainings = model.info.get("members", [model.info["training"]])
        seconds = sum(training["seconds"] for training in trainings)
        model.info["training"] |= {"validation_accuracy": score().mean, "seconds": seconds}

    def finish(self, model: Model, variant: Variant, shots: int) -> Model:
        """Choose the temperature on the validation classes, where it matters, and save the model of the cell.

        Where neither the product of both directions nor refined prototypes depend on it, the order of classes does not.
        """
        model.info["variant"] = variant
        model.info["recipe"] = self.recipe.name
        if model.method_name == "team" and model.method_options.get("bidirectional", True):
            learned = float(model.method.temperature.detach())
            episodes = self.recipe.choice_episodes
            score = self._scorer(model, self.images("val"), variant, shots, episodes, 2)
            tried = {}
            for scale in _TEMPERATURES:
                _set_temperature(model, scale * learned)
                tried[scale] = score().mean
            chosen = max(tried, key=tried.__getitem__)
            _set_temperature(model, chosen * learned)
            model.info["temperature"] = {
                "learned": learned,
                "chosen": chosen * learned,
                "validation": tried,
                "at_the_edge": chosen in (_TEMPERATURES[0], _TEMPERATURES[-1]),
            }
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
        weights: Path | None = None,
    ) -> Result:
        """The final figure of a cell on test episodes, with all that led to it; written to ``results`` if given.

        Weights trained for another number of shots, or on one partition of several, give a result of another name.
        weights: the file the model was read from; features are then kept in the cache for another time
        """
        evaluation = self._scorer(model, self.images("test"), variant, shots, episodes, seed, sampling, weights)()
        name = self._result_name(model, variant, shots, sampling)
        facts = cell_facts(self.recipe, model, variant, shots, name, self.images("test").checksum, self.device)
        result = describe(facts, evaluation)
        if results is not None:
            write_result(results, result, evaluation)
        return result

    def _result_name(self, model: Model, variant: Variant, shots: int, sampling: Sampling) -> str:
        """The cell's name; a figure found otherwise than the table's must not take its place, and is named for it."""
        settings = model.info["training"]["settings"]
        name = self.recipe.cell(variant, settings["shots"])
        if self.recipe.partitions > 1:
            name = partition_name(name, settings["seed"])
        if settings["shots"] != shots:
            name += f"-at-{shots}shot"
        return name if sampling == BALANCED else f"{name}-{sampling}".replace(" ", "-")

    def _scorer(
        self,
        model: Model,
        images: ImageSet,
        variant: Variant,
        shots: int,
        episodes: int,
        seed: int,
        sampling: Sampling = BALANCED,
        weights: Path | None = None,
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
            "unlabelled": settings.validation_unlabelled,
        } | sampling.options()
        if settings.statistics == "episode":
            return lambda: evaluate_images(network, method, images, statistics="episode", size=model.size, **task)
        if weights is None:
            features = by_class(embed(network, images.images, size=model.size), images)
        else:
            features = cached_features(weights, images.checksum, lambda: images, device=self.device).by_class()
        return lambda: evaluate(method, features, **task)

    def _fresh(self, variant: Variant | None = None) -> Model:
        """A model with weights drawn from the recipe's seed, for a variant or, None, for pre-training."""
        recipe = self.recipe
        method, options, size = "team", {}, recipe.pretrain_size or recipe.size
        if variant is not None:
            method, options, size = recipe.method_name(variant), recipe.method_options(variant), recipe.size
        model = Model.create(
            recipe.backbone,
            method,
            size,
            backbone_options=recipe.backbone_options,
            method_options=options,
            seed=recipe.episodic.seed,
        )
        model.network.to(self.device)
        model.method.to(self.device)
        return model


def partition_name(cell: str, number: int) -> str:
    """The name of a result that stands for one partition of a cell."""
    return f"{cell}-partition{number}"


def _finished(path: Path, best: Model) -> Model | None:
    """The finished model in this file if it came from the same training, so that its choices are made already."""
    try:
        made = load_model(path)
    except CheckpointError:  # there is none yet, or it is damaged
        return None
    what = "members" if "members" in best.info else "training"
    same = made.info.get(what) == best.info[what] and made.backbone_options == best.backbone_options
    return made if same else None


@torch.no_grad()
def _set_temperature(model: Model, value: float) -> None:
    model.method.log_temperature.fill_(math.log(value))
