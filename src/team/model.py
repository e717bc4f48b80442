"""A trained model: a network, the method it was trained for, and what is known about how it came to be."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from team.backbones import create_backbone, feature_dim
from team.files import AnyPath
from team.methods import Method, create_method, list_options
from team.training.checkpoint import (
    CheckpointError,
    load_checkpoint,
    load_into,
    save_checkpoint,
    with_prefix,
    without_prefix,
)


@dataclass(eq=False)
class Model:
    """network: images ``[n, 3, size, size]`` -> features; method: features -> log-probabilities.

    backbone, method_name and their options say how to make both again (backbone is "" for a module of the user's own);
    size: side of the network's input; seen_prototypes: mean feature of every training class ``[T, d]``, or None;
    info: free-form facts (data set, recipe, seed, validation accuracy, ...) that travel with the weights.
    """

    network: nn.Module
    method: Method
    backbone: str
    backbone_options: dict[str, Any]
    method_name: str
    method_options: dict[str, Any]
    size: int
    seen_prototypes: Tensor | None = None
    info: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def create(
        cls,
        backbone: str,
        method: str,
        size: int,
        *,
        backbone_options: dict[str, Any] | None = None,
        method_options: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> Model:
        """A new model; with a seed its weights depend on that alone, and torch's own random state is left as it was.

        A method with learned weights gets the width of the network's features as its option ``dim``.
        """
        method_options = dict(method_options or {})
        with torch.random.fork_rng(devices=[], enabled=seed is not None):
            if seed is not None:
                torch.manual_seed(seed)
            network = create_backbone(backbone, **(backbone_options or {}))
        if "dim" in list_options(method):
            method_options.setdefault("dim", feature_dim(network, size))
        head = create_method(method, **method_options)
        return cls(network, head, backbone, backbone_options or {}, method, method_options, size)

    def start_from(self, path: AnyPath) -> None:
        """Take the network, and the story of its pre-training, from the model in this file."""
        begun = load_model(path)
        if "pretraining" not in begun.info:
            raise CheckpointError(f"{path} does not say how it was pre-trained; start from a model that a recipe made")
        load_into(self.network, begun.network.state_dict(), str(path))
        self.info["pretraining"] = begun.info["pretraining"]

    def with_backbone_options(self, options: dict[str, Any]) -> Model:
        """The same model with other options of its backbone, none of which changes the weights there are."""
        backbone_options = self.backbone_options | options
        network = create_backbone(self.backbone, **backbone_options)
        load_into(network, self.network.state_dict(), f"the network with {options}")
        return replace(self, network=network.train(self.network.training), backbone_options=backbone_options)

    def save(self, path: AnyPath) -> None:
        tensors = with_prefix("network", self.network.state_dict()) | with_prefix("method", self.method.state_dict())
        if self.seen_prototypes is not None:
            tensors["seen_prototypes"] = self.seen_prototypes
        save_checkpoint(Path(path), tensors, self.description())

    def description(self) -> dict[str, Any]:
        """Everything but the tensors, as JSON values."""
        return {
            "backbone": self.backbone,
            "backbone_options": self.backbone_options,
            "method": self.method_name,
            "method_options": self.method_options,
            "size": self.size,
            "info": self.info,
        }


def load_model(path: AnyPath, *, network: nn.Module | None = None) -> Model:
    """Read a model; ``network`` is needed where it was trained with a module of the user's own."""
    path = Path(path)
    tensors, about = load_checkpoint(path)
    if "backbone" not in about:
        raise CheckpointError(
            f"{path} is the state of a training run, not a model; its model is best.safetensors beside it"
        )
    if network is None:
        if not about["backbone"]:
            raise CheckpointError(f"{path} was trained with a network of one's own: pass it as network=")
        network = create_backbone(about["backbone"], **about["backbone_options"])
    load_into(network, without_prefix("network", tensors), str(path))
    seen = {"seen": tensors["seen_prototypes"]} if "seen_prototypes" in tensors else {}
    method = create_method(about["method"], **about["method_options"], **seen)
    load_into(method, without_prefix("method", tensors), str(path))
    return Model(
        network.eval(),
        method.eval(),
        about["backbone"],
        about["backbone_options"],
        about["method"],
        about["method_options"],
        about["size"],
        tensors.get("seen_prototypes"),
        about["info"],
    )


def average_models(models: Sequence[Model]) -> Model:
    """The model whose weights are the mean of those of several (Wortsman et al., "Model soups", ICML 2022).

    Networks that were trained from the same start, each in its own way or with its own seed, lie around a better one
    than any of them: as good as a vote of all, at the cost of one. From different starts their mean is worthless. All
    must be of one kind; the result has the other facts of the first, and how each was trained in ``info["members"]``.
    """
    if not models:
        raise ValueError("average_models needs at least one model")
    first = models[0]
    about = first.description() | {"info": None}
    for model in models[1:]:
        other = model.description() | {"info": None}
        if differing := [name for name in about if about[name] != other[name]]:
            raise ValueError(f"models to average must be of one kind; these differ in {', '.join(differing)}")
    if any(model.seen_prototypes is not None for model in models):
        raise ValueError("models with seen-class prototypes cannot be averaged: these belong to each one's features")
    result = copy.deepcopy(first)
    result.info["members"] = [model.info.get("training") for model in models]
    for part in ("network", "method"):
        states = [getattr(model, part).state_dict() for model in models]
        for name, tensor in getattr(result, part).state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(torch.stack([state[name].to(tensor).double() for state in states]).mean(0))
    return result
