"""Recipes by name. Each file holds every number that made the results it stands for."""

from __future__ import annotations

from team.recipes import conv4, resnet18, semi
from team.recipes.glyphs import GLYPHS
from team.recipes.recipe import VARIANTS, Recipe, Variant

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe for file in (conv4, resnet18) for recipe in (file.MINIIMAGENET, file.CIFAR100, file.CUB)
} | {recipe.name: recipe for recipe in (resnet18.MEAN, semi.MINIIMAGENET, GLYPHS)}


def parse_cell(cell: str) -> tuple[Recipe, Variant, int]:
    """Recipe, variant and shots of a cell's name, e.g. ``cifar100-conv4-5shot-team``."""
    for recipe in RECIPES.values():
        for variant in recipe.variants:
            start, end = f"{recipe.name}-", f"shot-{variant}"
            if cell.startswith(start) and cell.endswith(end) and cell[len(start) : -len(end)].isdigit():
                return recipe, variant, int(cell[len(start) : -len(end)])
    raise ValueError(
        f"{cell!r} is no cell; write e.g. cifar100-conv4-5shot-team: one of {', '.join(RECIPES)}, "
        f"a number of shots, one of {', '.join(conv4.MINIIMAGENET.variants)} "
        f"(semi: {', '.join(semi.MINIIMAGENET.variants)})"
    )


__all__ = ["RECIPES", "VARIANTS", "Recipe", "Variant", "parse_cell"]
