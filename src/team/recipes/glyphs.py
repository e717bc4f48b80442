"""The recipe for the built-in glyphs (32×32, 128 features): trains any method on a CPU in minutes, to see it learn."""

from __future__ import annotations

from team.data.augment import Augmentation
from team.recipes.recipe import Recipe
from team.training.settings import EpisodicSettings, PretrainSettings

_LIGHT = Augmentation(flip=False)  # a mirrored character is another character

# To fit the network to an episode takes a CPU a quarter of a second, and many times that if queries take part in it.
_SLOW = {"episodes": 300, "validate_every": 100, "validation_episodes": 60}
_SLOWER = {"episodes": 100, "validate_every": 50, "validation_episodes": 40, "queries": 5, "validation_queries": 5}

GLYPHS_PRETRAINING = PretrainSettings(
    epochs=8,
    batch=64,
    learning_rate=0.1,
    label_smoothing=0.1,
    augmentation=_LIGHT,
    validations=2,
    validation_episodes=200,
)
"""Also the demo's, which chose it on the validation scripts (see there)."""

GLYPHS = Recipe(
    name="glyphs-conv4",
    dataset="glyphs",
    split="scripts",
    backbone="conv4",
    backbone_options={"filters": 32},
    size=32,
    pretrain=GLYPHS_PRETRAINING,
    episodic=EpisodicSettings(
        episodes=600,
        per_step=2,
        learning_rate=2e-3,
        schedule="cosine",
        augmentation=_LIGHT,
        average=0.98,
        validate_every=100,
        validation_episodes=200,
    ),
    by_variant={"maml": _SLOW, "reptile": _SLOW, "maml+": _SLOWER},
)
