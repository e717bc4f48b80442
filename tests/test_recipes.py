"""Claims about recipes: each can be built as it stands, and its cells are named as the documentation says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from team import create_backbone, create_method
from team.methods import TEAM
from team.recipes import RECIPES, VARIANTS, Recipe, Variant, parse_cell
from team.recipes.learned import LEARNED
from team.training.settings import EpisodicSettings, PretrainSettings, from_json, to_json

every_recipe = pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
SHOTS = (1, 3, 5, 7, 9)


def test_a_cell_is_named_after_data_network_shots_and_variant() -> None:
    assert RECIPES["cifar100-conv4"].cell("team", 5) == "cifar100-conv4-5shot-team"
    cells = {
        recipe.cell(variant, shots): (recipe, variant, shots)
        for recipe in RECIPES.values()
        for variant in recipe.variants
        for shots in SHOTS
    }
    assert len(cells) == len(SHOTS) * sum(len(recipe.variants) for recipe in RECIPES.values())
    assert all(parse_cell(cell) == meant for cell, meant in cells.items())


@every_recipe
def test_a_recipe_stands_under_its_own_name_and_can_be_built(recipe: Recipe) -> None:
    assert RECIPES[recipe.name] is recipe
    kind = "-semi" if recipe.labelled is not None else "-mean" if recipe.members > 1 else ""
    assert recipe.name == f"{recipe.dataset}-{recipe.backbone}{kind}"
    assert recipe.size >= 32
    create_backbone(recipe.backbone, **recipe.backbone_options)
    if recipe.pretrain is not None:
        assert from_json(PretrainSettings, json.loads(json.dumps(to_json(recipe.pretrain)))) == recipe.pretrain


@pytest.mark.parametrize(
    ("recipe", "variant"),
    [(recipe, variant) for recipe in RECIPES.values() for variant in recipe.variants],
    ids=lambda value: value.name if isinstance(value, Recipe) else value,
)
def test_every_cell_has_a_valid_method_and_valid_settings(recipe: Recipe, variant: Variant) -> None:
    method = create_method(recipe.method_name(variant), **recipe.method_options(variant))
    assert isinstance(method, TEAM) == (variant in VARIANTS)
    assert method.log_temperature.requires_grad == (variant not in LEARNED)
    json.dumps(recipe.method_options(variant))
    for shots in SHOTS:
        settings = recipe.settings(variant, shots)
        assert settings.shots == shots
        assert method.semi_supervised or settings.unlabelled == settings.validation_unlabelled == 0
        assert from_json(EpisodicSettings, json.loads(json.dumps(to_json(settings)))) == settings


def test_the_rows_of_the_ablation_add_one_part_each() -> None:
    methods = [create_method("team", **options) for options in VARIANTS.values()]
    parts = [(method.mixing, method.metric, method.bidirectional) for method in methods if isinstance(method, TEAM)]
    assert parts == [(False, False, False), (True, False, False), (True, True, False), (True, True, True)]


def test_the_baseline_is_protonet() -> None:
    random = torch.Generator().manual_seed(0)
    support, query = torch.randn(10, 8, generator=random), torch.randn(15, 8, generator=random)
    labels = torch.arange(5).repeat(2)
    baseline = create_method("team", **VARIANTS["baseline"])(support, labels, query)
    torch.testing.assert_close(baseline, create_method("protonet")(support, labels, query))


def test_what_differs_for_a_variant_or_a_number_of_shots_is_honoured() -> None:
    recipe = replace(
        RECIPES["cifar100-conv4"],
        method={"k": 9},
        by_variant={"team": {"learning_rate": 0.5, "episodes": 77}},
        by_shots={5: {"episodes": 55}},
    )
    assert recipe.method_options("team")["k"] == 9
    assert recipe.settings("team", 1) == replace(recipe.episodic, shots=1, learning_rate=0.5, episodes=77)
    assert recipe.settings("eam", 1) == replace(recipe.episodic, shots=1)
    assert recipe.settings("team", 5) == replace(recipe.episodic, shots=5, learning_rate=0.5, episodes=55)
