"""Claims about checkpoints: what was saved comes back, and a file that cannot be used is named, before any change."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from team import create_backbone
from team.training.checkpoint import (
    CheckpointError,
    load_checkpoint,
    load_into,
    load_optimiser,
    optimiser_tensors,
    save_checkpoint,
    with_prefix,
    without_prefix,
)

TENSORS = {
    "weight": torch.arange(6.0).reshape(2, 3),
    "transposed": torch.arange(6.0).reshape(2, 3).T,
    "number": torch.tensor(7),
    "half": torch.tensor([0.5], dtype=torch.bfloat16),
    "flags": torch.tensor([True, False]),
    "none": torch.zeros(0, 3),
}
INFO: dict[str, Any] = {"class": "ψ", "settings": {"seed": 3, "rate": 1e-3}, "list": [1, None]}


def equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        tensor.dtype == second[name].dtype and torch.equal(tensor, second[name]) for name, tensor in first.items()
    )


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "model.safetensors"
    save_checkpoint(path, TENSORS, INFO)
    return path


def test_tensors_and_description_come_back_as_they_were(saved: Path) -> None:
    tensors, info = load_checkpoint(saved)
    assert equal(tensors, TENSORS)
    assert info == INFO
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(saved: Path) -> None:
    with pytest.raises(TypeError):
        save_checkpoint(saved, {"weight": torch.zeros(1)}, {"no JSON": object()})
    assert equal(load_checkpoint(saved)[0], TENSORS)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.safetensors", tmp_path):
        with pytest.raises(CheckpointError, match="there is no checkpoint .*" + path.name):
            load_checkpoint(path)


def test_a_truncated_file_is_named_whatever_its_length(saved: Path) -> None:
    content = saved.read_bytes()
    for length in range(0, len(content), 7):
        saved.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match=r"model\.safetensors is truncated or damaged .* train again"):
            load_checkpoint(saved)


@pytest.mark.parametrize("flip", [0x01, 0x20, 0xFF])
def test_no_flipped_byte_goes_unnoticed(saved: Path, flip: int) -> None:
    content, refused = saved.read_bytes(), 0
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= flip
        saved.write_bytes(damaged)
        try:
            tensors, info = load_checkpoint(saved)
        except CheckpointError as error:
            refused += str(saved) in str(error)
        else:
            assert equal(tensors, TENSORS), f"byte {position}"
            assert info == INFO, f"byte {position}"
    assert refused > len(content) - 20, "only the name of a checksum may be damaged without harm"


def test_a_checkpoint_written_before_descriptions_had_a_checksum_is_read(saved: Path, tmp_path: Path) -> None:
    from safetensors import safe_open

    with safe_open(saved, framework="pt") as file:
        header = file.metadata()
    del header["info_sha256"]
    older = tmp_path / "older.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in TENSORS.items()}, older, metadata=header)
    assert load_checkpoint(older)[1] == INFO


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_a_safetensors_file_of_another_program_is_named(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    path = tmp_path / "theirs.safetensors"
    save_file({"weight": torch.zeros(3)}, path, metadata=metadata)
    with pytest.raises(CheckpointError, match=r"theirs\.safetensors is a safetensors file, but not a checkpoint"):
        load_checkpoint(path)


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save({"weight": torch.zeros(3)}, path)
    with pytest.raises(CheckpointError, match=r"model\.pt is truncated or damaged"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: create_backbone("conv4", filters=16), r"of shape \[16, 3, 3, 3\], the network \[8, 3, 3, 3\]"),
        (lambda: create_backbone("resnet18"), r"has no blocks\.0\.0\.weight \(24 missing\)"),
        (lambda: nn.ModuleList([create_backbone("conv4", filters=8)]), "missing"),
    ],
)
def test_weights_of_another_network_are_turned_away_before_anything_changes(other: Any, words: str) -> None:
    network = create_backbone("conv4", filters=8)
    before = copy.deepcopy(network.state_dict())
    with pytest.raises(CheckpointError, match=f"^some file .*{words}.*made for another network"):
        load_into(network, other().state_dict(), "some file")
    assert equal(network.state_dict(), before)


def test_weights_with_something_extra_are_turned_away_before_anything_changes() -> None:
    network = create_backbone("conv4", filters=8)
    before = copy.deepcopy(network.state_dict())
    theirs = create_backbone("conv4", filters=8).state_dict() | {"head.weight": torch.zeros(2)}
    with pytest.raises(CheckpointError, match=r"also has head\.weight \(1 too many\)"):
        load_into(network, theirs, "some file")
    assert equal(network.state_dict(), before)


def test_prefixes_separate_what_is_saved_together() -> None:
    both = with_prefix("network", TENSORS) | with_prefix("networks", {"weight": torch.zeros(1)})
    assert equal(without_prefix("network", both), TENSORS)


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_an_optimiser_goes_on_as_if_never_saved(tmp_path: Path, kind: str) -> None:
    def fresh() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        network = create_backbone("conv4", filters=8).to(memory_format=torch.channels_last)
        if kind == "adam":
            return network, torch.optim.AdamW(network.parameters(), lr=1e-2)
        return network, torch.optim.SGD(network.parameters(), lr=1e-2, momentum=0.9, nesterov=True)

    def go(network: nn.Module, optimiser: torch.optim.Optimizer, steps: int) -> None:
        for step in range(steps):
            images = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(step))
            optimiser.zero_grad()
            network(images).square().sum().backward()
            optimiser.step()

    with torch.random.fork_rng(devices=[]):
        network, optimiser = fresh()
        go(network, optimiser, 3)
        path = tmp_path / "state.safetensors"
        save_checkpoint(
            path, with_prefix("o", optimiser_tensors(optimiser)) | with_prefix("n", network.state_dict()), {}
        )
        resumed, other = fresh()
        tensors, _ = load_checkpoint(path)
        load_into(resumed, without_prefix("n", tensors), str(path))
        load_optimiser(other, without_prefix("o", tensors))
        for parameter, state in other.state.items():
            for value in state.values():
                if isinstance(value, Tensor) and value.ndim:
                    assert value.stride() == parameter.stride(), "fused optimisers take no other memory layout"
        go(network, optimiser, 3)
        go(resumed, other, 3)
    assert equal(network.state_dict(), resumed.state_dict())
