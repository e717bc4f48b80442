"""What a recipe is: every number that makes a family of results, from the data to the test episodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from team.recipes.learned import LEARNED
from team.training.settings import EpisodicSettings, PretrainSettings

Variant = Literal["baseline", "tim", "eam", "team", "relationnet", "tpn", "gnn", "maml", "maml+", "reptile"]
"""What a cell trains: a row of the paper's ablation (ProtoNet, + mixing, + adaptive metric, + bi-directional
similarity), or another method with learned parts, under its own name."""

VARIANTS: dict[Variant, dict[str, Any]] = {
    "baseline": {"mixing": False, "metric": False, "bidirectional": False, "squared": True},
    "tim": {"mixing": True, "metric": False, "bidirectional": False, "squared": True},
    "eam": {"mixing": True, "metric": True, "bidirectional": False},
    "team": {"mixing": True, "metric": True, "bidirectional": True},
}
"""Options of the method "team" that make each row of the ablation."""


@dataclass(frozen=True)
class Recipe:
    """One data set and one network, for all methods and shots.

    method: options for the method "team" shared by all rows of the ablation, e.g. k and the temperature's start
    pretrain: None trains from scratch; episodic: shots are set per cell
    by_variant, by_shots: settings of EpisodicSettings that differ for a variant or a number of shots
    """

    name: str
    dataset: str
    split: str
    backbone: str
    size: int
    episodic: EpisodicSettings
    pretrain: PretrainSettings | None = None
    stored_size: int | None = None
    """Side of the images in the cache, where it is not the network's input size; the device enlarges them."""
    encoding: str = "exact"
    backbone_options: dict[str, Any] = field(default_factory=dict)
    method: dict[str, Any] = field(default_factory=dict)
    by_variant: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_shots: dict[int, dict[str, Any]] = field(default_factory=dict)

    def cell(self, variant: Variant, shots: int) -> str:
        """The name under which weights and results of a cell are kept, e.g. ``cifar100-conv4-5shot-team``."""
        return f"{self.name}-{shots}shot-{variant}"

    def method_name(self, variant: Variant) -> str:
        return variant if variant in LEARNED else "team"

    def method_options(self, variant: Variant) -> dict[str, Any]:
        if variant in LEARNED:
            return LEARNED[variant].options
        return {"learn_temperature": True} | self.method | VARIANTS[variant]

    def settings(self, variant: Variant, shots: int) -> EpisodicSettings:
        learned = LEARNED[variant].settings if variant in LEARNED else {}
        changes = learned | self.by_variant.get(variant, {}) | self.by_shots.get(shots, {})
        return replace(self.episodic, shots=shots, **changes)
