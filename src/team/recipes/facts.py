"""What a result file says beside the figure: all that led to it."""

from __future__ import annotations

from typing import Any

from team.model import Model
from team.provenance import commit, hardware
from team.recipes.recipe import Recipe, Variant


def cell_facts(
    recipe: Recipe, model: Model, variant: Variant, shots: int, name: str, test: str, device: str
) -> dict[str, Any]:
    """JSON values about the model of a cell and its evaluation.

    name: of the result; test: the checksum of the test images; device: where the model was evaluated
    """
    training, pretraining = (model.info.get(phase, {}) for phase in ("training", "pretraining"))
    settings = recipe.settings(variant, shots)
    return {
        "cell": name,
        "dataset": recipe.dataset,
        "split": recipe.split,
        "backbone": recipe.backbone,
        "method": variant,
        "recipe": recipe.name,
        "input": f"{recipe.size}×{recipe.size}" + (", bounding boxes cropped" if recipe.dataset == "cub" else ""),
        "views": getattr(model.network, "views", 1),
        "batch_normalisation": settings.statistics,
        "method_options": model.method_options,
        "temperature": float(model.method.temperature.detach()),
        "temperature_choice": model.info.get("temperature"),
        "unlabelled": settings.validation_unlabelled,
        "chosen_on": "validation classes",
        "validation_accuracy": training.get("validation_accuracy"),
        "seed": recipe.episodic.seed,
        "members": recipe.members,
        "settings": {"pretraining": pretraining.get("settings"), "training": training.get("settings")},
        "data": {"train": training.get("data"), "test": test},
        "commit": {"training": training.get("commit", ""), "evaluation": commit()},
        "hardware": {"training": training.get("hardware", ""), "evaluation": hardware(device)},
        "training_seconds": {"pretraining": pretraining.get("seconds"), "training": training.get("seconds")},
    }
