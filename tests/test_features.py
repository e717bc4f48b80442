"""Claims about kept features: what is read is what would be made now, or it is made anew."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import tiny_images, tiny_model

from team.data.images import ImageSet
from team.evaluation import by_class, embed
from team.evaluation import features as room
from team.evaluation.features import Features, cached_features
from team.provenance import source_checksum


class Asked:
    """Image sets that count how often they were asked for."""

    def __init__(self, images: ImageSet) -> None:
        self.images, self.times = images, 0

    def __call__(self) -> ImageSet:
        self.times += 1
        return self.images


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    tiny_model().save(path)
    return path


def test_features_are_the_networks_and_are_made_once(weights: Path, tmp_path: Path) -> None:
    asked = Asked(tiny_images(4, 5))
    first, second = (cached_features(weights, asked.images.checksum, asked, cache=tmp_path / "kept") for _ in range(2))
    assert asked.times == 1
    expected = embed(tiny_model().network, asked.images.images, size=32)
    for found in (first, second):
        assert torch.equal(found.values, expected)
        for name, values in by_class(expected, asked.images).items():
            assert torch.equal(found.by_class()[name], values)


def test_many_images_move_a_bar_where_a_person_watches(
    weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(tiny_images(4, 135))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    found = cached_features(weights, asked.images.checksum, asked, cache=tmp_path / "kept")
    assert torch.equal(found.values, embed(tiny_model().network, asked.images.images, size=32))
    assert "540/540" in capsys.readouterr().err
    cached_features(weights, asked.images.checksum, asked, cache=tmp_path / "kept")
    assert capsys.readouterr().err == ""


def test_other_weights_other_data_and_other_code_are_other_features(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(tiny_images(4, 5))

    def ask(**changes: object) -> Features:
        return cached_features(weights, asked.images.checksum, asked, cache=tmp_path / "kept", **changes)

    first = ask()
    tiny_model(seed=1).save(weights)  # another network under the same name
    assert not torch.equal(ask().values, first.values)
    assert not torch.equal(ask(precision="bfloat16").values, ask(precision="float32").values)
    asked.images = replace(asked.images, images=255 - asked.images.images, checksum="another")
    ask()
    assert ask(each=2).values.shape == (8, first.values.shape[1])
    assert asked.times == 5
    monkeypatch.setattr(room, "source_checksum", lambda module: f"{module} was changed")
    ask()
    assert asked.times == 6


def test_the_first_images_of_each_class_are_those(weights: Path, tmp_path: Path) -> None:
    images = tiny_images(3, 4)
    shuffled = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    mixed = replace(images, images=images.images[shuffled], labels=images.labels[shuffled])
    asked = Asked(mixed)
    few = cached_features(weights, mixed.checksum, asked, each=2, cache=tmp_path)
    every = cached_features(weights, mixed.checksum, asked, cache=tmp_path)
    for name, values in every.by_class().items():
        torch.testing.assert_close(few.by_class()[name], values[:2], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(few.mean(), torch.stack([v.mean(0) for v in few.by_class().values()]).mean(0))


@pytest.mark.parametrize("damage", ["cut", "swap"])
def test_a_damaged_file_is_not_read(weights: Path, tmp_path: Path, damage: str) -> None:
    asked = Asked(tiny_images(3, 3))
    first = cached_features(weights, asked.images.checksum, asked, cache=tmp_path / "kept")
    [path] = (tmp_path / "kept").iterdir()
    content = path.read_bytes()
    path.write_bytes(content[:-9] if damage == "cut" else content[:-4] + b"\0\0\0@")
    second = cached_features(weights, asked.images.checksum, asked, cache=tmp_path / "kept")
    assert asked.times == 2
    assert torch.equal(second.values, first.values)


def test_images_that_changed_meanwhile_are_an_error(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it has changed meanwhile"):
        cached_features(weights, "what it was", Asked(tiny_images(3, 3)), cache=tmp_path)


def test_the_checksum_of_code_covers_what_it_imports_and_nothing_else() -> None:
    names = ("protonet", "simpleshot", "team", "tim")
    sums = {name: source_checksum(f"team.methods.{name}") for name in names}
    assert len(set(sums.values())) == len(names)
    assert sums["team"] == source_checksum("team.methods.team")
    with pytest.MonkeyPatch.context() as patch:
        read = Path.read_text
        changed = lambda path, **how: read(path, **how) + ("#" if path.name == "similarity.py" else "")  # noqa: E731
        patch.setattr(Path, "read_text", changed)
        source_checksum.cache_clear()
        assert source_checksum("team.methods.team") != sums["team"]
        assert source_checksum("team.methods.tim") == sums["tim"]
    source_checksum.cache_clear()
