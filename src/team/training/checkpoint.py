"""Checkpoints: one safetensors file each, tensors and a JSON description in its header, replaced atomically."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from team.files import atomic_path

_FORMAT = "team-checkpoint-1"


class CheckpointError(ValueError):
    """A checkpoint cannot be used; the message says which file, why, and what to do."""


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], info: Mapping[str, Any]) -> None:
    """Write both as one file; a reader at any moment, or after a crash, sees the old file or the new one."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(info, ensure_ascii=False)
    header = {"format": _FORMAT, "info": text, "sha256": _digest(plain), "info_sha256": _text_digest(text)}
    with atomic_path(path) as temporary:
        temporary.write_bytes(save(plain, metadata=header))  # an error is then the operating system's own


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the description of a checkpoint, checked against its own checksum."""
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint {path}")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(
            f"{path} is truncated or damaged ({error}); use another checkpoint or train again"
        ) from error
    if header.get("format") != _FORMAT:
        raise CheckpointError(f"{path} is a safetensors file, but not a checkpoint of this program's ({_FORMAT})")
    text = header.get("info", "")
    if header.get("sha256") != _digest(tensors) or header.get("info_sha256", _text_digest(text)) != _text_digest(text):
        raise CheckpointError(f"{path} is damaged: its content does not match its checksum; use another or train again")
    return tensors, json.loads(text)


def with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def without_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names start with the prefix, without it."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(prefix + ".")}


def load_into(module: nn.Module, tensors: Mapping[str, Tensor], what: str) -> None:
    """Copy tensors into a module, or say how the two differ before anything is changed."""
    own = module.state_dict()
    if missing := sorted(own.keys() - tensors.keys()):
        raise CheckpointError(f"{what} has no {missing[0]} ({len(missing)} missing): it was made for another network")
    if extra := sorted(tensors.keys() - own.keys()):
        raise CheckpointError(f"{what} also has {extra[0]} ({len(extra)} too many): it was made for another network")
    for name, tensor in own.items():
        if tensor.shape != tensors[name].shape:
            raise CheckpointError(
                f"{what} has {name} of shape {list(tensors[name].shape)}, the network {list(tensor.shape)}: "
                "it was made for another network"
            )
    module.load_state_dict(dict(tensors))


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimiser as named tensors."""
    state = optimiser.state_dict()["state"]
    return {f"{index}.{key}": torch.as_tensor(value) for index, entry in state.items() for key, value in entry.items()}


def load_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, key = name.split(".", 1)
        if tensor.shape == (parameter := parameters[int(index)]).shape and tensor.ndim > 0:
            # In the parameter's memory layout: a fused step takes no other.
            tensor = torch.empty_like(parameter, dtype=tensor.dtype).copy_(tensor)
        state.setdefault(int(index), {})[key] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def _digest(tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
