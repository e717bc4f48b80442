"""What a recipe is: every number that makes a family of results, from the data to the test episodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from team.recipes.learned import LEARNED
from team.training.settings import EpisodicSettings, PretrainSettings

Variant = Literal[
    "baseline",
    "tim",
    "eam",
    "team",
    "team+",
    "soft-kmeans",
    "soft-kmeans-cluster",
    "masked-soft-kmeans",
    "relationnet",
    "tpn",
    "gnn",
    "maml",
    "maml+",
    "reptile",
]
"""What a cell trains: a row of the paper's ablation (ProtoNet, + mixing, + adaptive metric, + bi-directional
similarity), or another method under its own name: team+, a peer of TEAM-semi, or one with learned parts."""

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

    variants: what it can train
    method: options for the method "team" shared by all rows of the ablation, e.g. k and the temperature's start
    pretrain: None trains from scratch; episodic: shots are set per cell
    by_variant, by_shots: settings of EpisodicSettings that differ for a variant or a number of shots
    members: of how many trainings a cell's weights are the mean; each has a seed of its own, and all start from the
        same pre-trained network
    choice_episodes: on how many validation episodes the temperature is chosen
    labelled: the share of every training class whose labels may be used; None: all of it
    partitions: how many times that share is drawn anew; a result is the mean over as many models
    """

    name: str
    dataset: str
    split: str
    backbone: str
    size: int
    episodic: EpisodicSettings
    pretrain: PretrainSettings | None = None
    teacher: Recipe | None = None
    """The recipe whose pre-trained network teaches this one's pre-training (``pretrain.teaching``)."""
    start: Recipe | None = None
    """The recipe whose pre-trained network cells start from, where it is not this one's."""
    stored_size: int | None = None
    """Side of the images in the cache, where it is not the network's input size; the device enlarges them."""
    pretrain_size: int | None = None
    """Side of the network's input in pre-training, where it is another; pooled features allow for it."""
    encoding: str = "exact"
    backbone_options: dict[str, Any] = field(default_factory=dict)
    at_test: dict[str, Any] = field(default_factory=dict)
    """Options of the backbone, none of which has weights, that are changed once a cell is trained."""
    method: dict[str, Any] = field(default_factory=dict)
    by_variant: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_shots: dict[int, dict[str, Any]] = field(default_factory=dict)
    members: int = 1
    variants: tuple[Variant, ...] = (*VARIANTS, "team+", "relationnet", "tpn", "gnn", "maml", "maml+", "reptile")
    choice_episodes: int = 2000
    labelled: float | None = None
    partitions: int = 1

    @property
    def cache_size(self) -> int:
        """Side of the images in the cache."""
        return self.stored_size or self.size

    def cell(self, variant: Variant, shots: int) -> str:
        """The name under which weights and results of a cell are kept, e.g. ``cifar100-conv4-5shot-team``."""
        return f"{self.name}-{shots}shot-{variant}"

    def method_name(self, variant: Variant) -> str:
        return "team" if variant in VARIANTS else variant

    def method_options(self, variant: Variant) -> dict[str, Any]:
        if variant in LEARNED:
            return LEARNED[variant].options
        options = self.method | VARIANTS[variant] if variant in VARIANTS else {}
        return {"learn_temperature": True} | options

    def settings(self, variant: Variant, shots: int) -> EpisodicSettings:
        learned = LEARNED[variant].settings if variant in LEARNED else {}
        changes = learned | self.by_variant.get(variant, {}) | self.by_shots.get(shots, {})
        return replace(self.episodic, shots=shots, **changes)

    def partition(self, number: int) -> Recipe:
        """The recipe of one partition, whose number is the seed of all that is random in it."""
        if not 0 <= number < self.partitions:
            raise ValueError(f"{self.name} has the partitions 0 to {self.partitions - 1}, not {number}")
        pretrain = None if self.pretrain is None else replace(self.pretrain, seed=number)
        return replace(self, pretrain=pretrain, episodic=replace(self.episodic, seed=number))

    def quick(self) -> Recipe:
        """The same recipe with next to no training, to see that everything runs."""
        little: dict[str, Any] = {"episodes": 4, "per_step": 2, "validate_every": 4, "validation_episodes": 10}
        by_variant: dict[str, dict[str, Any]] = {name: self.by_variant.get(name, {}) | little for name in self.variants}
        pretrain = self.pretrain
        if pretrain is not None:
            pretrain = replace(pretrain, epochs=1, validations=1, validation_episodes=10)
        return replace(
            self,
            episodic=replace(self.episodic, **little),
            by_variant=by_variant,
            pretrain=pretrain,
            members=min(self.members, 2),
            choice_episodes=10,
            partitions=min(self.partitions, 2),
        )
