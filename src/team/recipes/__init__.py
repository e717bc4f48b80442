"""Recipes by name. Each file holds every number that made the results it stands for."""

from __future__ import annotations

from team.recipes.conv4 import CIFAR100, CUB, MINIIMAGENET
from team.recipes.recipe import VARIANTS, Recipe, Variant

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (CIFAR100, MINIIMAGENET, CUB)}

__all__ = ["RECIPES", "VARIANTS", "Recipe", "Variant"]
