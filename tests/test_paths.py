"""Claims about paths: every public name that takes one takes it as a string, a Path, or anything like one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import tiny_model
from PIL import Image
from torch import Tensor, nn

import team
from team.files import AnyPath
from team.labelling.embedders import Embedder, find_embedder


class Like(os.PathLike[str]):
    """A path of somebody else's class, such as os.DirEntry."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


class Means(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return images.mean((-2, -1))


any_kind = pytest.mark.parametrize("kind", [str, Path, Like])
Kind = Callable[[Path], AnyPath]


@any_kind
def test_models_are_saved_found_and_loaded(tmp_path: Path, kind: Kind) -> None:
    path, model = tmp_path / "new" / "model.safetensors", tiny_model()
    model.info["pretraining"] = "none"
    model.save(kind(path))
    assert team.weights_path(kind(path)) == path
    assert team.load_model(kind(path)).description() == model.description()
    other = tiny_model(seed=1)
    other.start_from(kind(path))
    assert other.info["pretraining"] == "none"
    assert team.weights_path(kind(Path(team.list_weights()[0]))).is_file()


@any_kind
def test_folders_are_labelled_and_labels_exported(tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_CACHE", str(tmp_path / "cache"))
    folder, table, out = tmp_path / "photos", tmp_path / "few.csv", tmp_path / "all.csv"
    folder.mkdir()
    for number in range(6):
        Image.new("RGB", (8, 8), (40 * number, 0, 200 - 40 * number)).save(folder / f"{number}.png")
    table.write_text("path,label\n0.png,blue\n5.png,red\n", encoding="utf-8")
    found = team.label_folder(kind(folder), kind(table), embedder=Embedder(Means(), 8))
    found.export(kind(out))
    assert len(out.read_text(encoding="utf-8").splitlines()) == 1 + len(found.rows) == 7


@any_kind
def test_a_file_of_weights_can_embed_a_folder(tmp_path: Path, kind: Kind) -> None:
    tiny_model().save(tmp_path / "model.safetensors")
    assert find_embedder(kind(tmp_path / "model.safetensors")).size == 32
