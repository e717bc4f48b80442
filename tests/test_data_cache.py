"""The cache: found without the source, exact, whole or made anew, and never touching a part that was not asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import team.data.cache as cache_module
from team.data import DataError, contact_sheet, info, load, prepare
from team.data.pixels import as_rgb, clipped, encode
from team.data.source import Picture

SPLIT = {"train": ["ant", "bee"], "val": ["cat"], "test": ["dog"]}


@pytest.fixture
def pets(tmp_path, monkeypatch):
    monkeypatch.setenv("TEAM_CACHE", str(tmp_path / "cache"))
    generator = np.random.default_rng(0)
    folder = tmp_path / "pets"
    for name in ("ant", "bee", "cat", "dog"):
        (folder / name).mkdir(parents=True)
        for number in range(5):
            Image.fromarray(generator.integers(0, 256, (30, 40, 3), np.uint8)).save(folder / name / f"{number}.png")
    return folder


def shards(folder: Path, part: str) -> list[Path]:
    return sorted((folder / "cache" / "data").glob(f"*/{part}-*.safetensors"))


def test_the_cache_alone_is_enough(pets, tmp_path):
    made = load("folder", "train", root=pets, split=SPLIT, size=16)
    pets.rename(tmp_path / "gone")
    again = load("folder", "train", root=pets, split=SPLIT, size=16)
    assert torch.equal(made.images, again.images)
    assert made.checksum == again.checksum
    assert again.classes == ("ant", "bee")
    with pytest.raises(DataError, match=r"not prepared in .*team data prepare folder --root DIR.*--size 17"):
        load("folder", "train", root=pets, split=SPLIT, size=17)


def test_loading_needs_neither_rich_nor_the_other_parts(pets, tmp_path):
    prepare("folder", pets, split=SPLIT, size=16)
    for path in (tmp_path / "cache").rglob("test*"):
        path.unlink()
    pets.rename(tmp_path / "gone")
    code = (
        "import sys\n"
        "for name in ('rich', 'tyro', 'sklearn', 'matplotlib'): sys.modules[name] = None\n"
        "from team.data import load\n"
        f"print(len(load('folder', 'val', root={str(pets)!r}, split={SPLIT!r}, size=16)))\n"
    )
    source = str(Path(cache_module.__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": source}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "5\n", done.stderr


@pytest.mark.parametrize("damage", ["truncate", "flip", "remove", "index"])
def test_a_broken_cache_is_named_and_made_anew_from_the_source(pets, tmp_path, damage):
    good = load("folder", "train", root=pets, split=SPLIT, size=16)
    (shard,) = shards(tmp_path, "train")
    content = bytearray(shard.read_bytes())
    broken = shard
    if damage == "truncate":
        shard.write_bytes(content[:-7])
    elif damage == "flip":
        content[-1] ^= 1
        shard.write_bytes(content)
    elif damage == "remove":
        shard.unlink()
    else:
        broken = shard.with_name("train.json")
        broken.write_text(broken.read_text()[:100])
    hidden = pets.rename(tmp_path / "hidden")
    with pytest.raises(DataError, match=rf"{broken.name} .*make it anew: team data prepare folder --root DIR"):
        load("folder", "train", root=pets, split=SPLIT, size=16)
    hidden.rename(pets)
    assert load("folder", "train", root=pets, split=SPLIT, size=16).checksum == good.checksum


def test_a_changed_source_is_noticed_and_old_shards_are_removed(pets, tmp_path):
    before = load("folder", "train", root=pets, split=SPLIT, size=16)
    (pets / "ant" / "0.png").unlink()
    after = load("folder", "train", root=pets, split=SPLIT, size=16)
    assert (len(before), len(after)) == (10, 9)
    assert len(shards(tmp_path, "train")) == 1


def test_an_unchanged_source_is_not_decoded_again(pets, tmp_path):
    prepare("folder", pets, split=SPLIT, size=16)
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    prepare("folder", pets, split=SPLIT, size=16)
    assert stamps == {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*") if path.is_file()}


def test_shards_stay_below_their_limit_and_join_in_order(pets, tmp_path, monkeypatch):
    whole = load("folder", "train", root=pets, split=SPLIT, size=16)
    monkeypatch.setattr(cache_module, "SHARD_BYTES", 4000)
    index = prepare("folder", pets, split=SPLIT, size=16, cache=tmp_path / "small")["train"]
    parts = load("folder", "train", root=pets, split=SPLIT, size=16, cache=tmp_path / "small")
    assert len(index.shards) > 2
    assert all(shard.bytes <= 4000 for shard in index.shards)
    assert torch.equal(whole.images, parts.images)
    assert torch.equal(whole.labels, parts.labels)


def test_exact_loses_nothing_and_jpeg_little(pets):
    exact = load("folder", "val", root=pets, split=SPLIT, size=24)
    jpeg = load("folder", "val", root=pets, split=SPLIT, size=24, encoding="jpeg")
    with Image.open(pets / "cat" / "0.png") as image:
        expected = np.asarray(image.resize((24, 24), Image.Resampling.BICUBIC))
    assert np.array_equal(exact.images[0].permute(1, 2, 0), expected)
    assert 0 < (exact.images.float() - jpeg.images.float()).abs().mean() < 4
    assert exact.checksum != jpeg.checksum


def test_fractions_divide_all_classes_by_seed(pets):
    shares = "0.5-0.25-0.25"
    loaded = {part: load("folder", part, root=pets, split=f"{shares}@3", size=8) for part in ("train", "val", "test")}
    names = [name for images in loaded.values() for name in images.classes]
    assert sorted(names) == ["ant", "bee", "cat", "dog"]
    assert [len(images.classes) for images in loaded.values()] == [2, 1, 1]
    others = {load("folder", "test", root=pets, split=f"{shares}@{seed}", size=8).classes for seed in range(8)}
    assert len(others) > 1


def test_a_split_can_be_a_json_file(pets, tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(SPLIT))
    assert load("folder", "test", root=pets, split=str(file), size=8).classes == ("dog",)


def test_info_says_what_is_prepared_without_reading_images(pets, tmp_path):
    prepare("folder", pets, split=SPLIT, size=16, parts=["train"])
    for shard in shards(tmp_path, "train"):
        shard.unlink()
    found = info("folder", root=pets, split=SPLIT, size=16)
    train, test = found.parts["train"], found.parts["test"]
    assert (train.prepared, train.images, train.smallest, train.largest, train.shards) == (True, 10, 5, 5, 1)
    assert (test.prepared, test.images, test.classes) == (False, 0, ("dog",))
    (found.folder / "train.json").write_text("{}")
    assert "cannot be used" in info("folder", root=pets, split=SPLIT, size=16).parts["train"].problem


def test_a_contact_sheet_shows_the_images(pets, tmp_path):
    images = load("folder", "train", root=pets, split=SPLIT, size=16)
    path = contact_sheet(images, tmp_path / "sheet.png", rows=5, columns=3)
    with Image.open(path) as sheet:
        assert sheet.size == (3 * 18 + 2, 2 * 32 + 2)
        tile = np.asarray(sheet)[16:32, 2:18]
    assert any(np.array_equal(tile, image.permute(1, 2, 0)) for image in images.images)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "imagenet"}, "data set 'imagenet' is not known: choose one of miniimagenet, cifar100, cub, folder"),
        ({"size": 4}, "size 4 is outside 8 to 1024"),
        ({"encoding": "png"}, "encoding 'png' is not one of exact, jpeg"),
        ({"part": "training"}, "part 'training' is not one of train, val, test"),
        ({"split": "fc100"}, "split 'fc100' of folder is not known: choose fractions such as"),
        ({"split": "0.5-0.2-0.2"}, "add up to 0.9, not to 1"),
        ({"split": {"train": ["ant"], "val": ["ant"]}}, "class 'ant' in train and in val"),
        ({"split": {"train": ["ant"]}, "part": "val"}, "no classes for part 'val', only for train"),
        ({"split": {"train": ["unicorn"]}}, "no images of 1 of the 1 classes asked for, 'unicorn'"),
        ({"root": None}, "which folder"),
    ],
)
def test_a_wrong_request_is_refused_before_work_starts(pets, arguments, message):
    request = {"name": "folder", "part": "train", "root": pets, "size": 16, **arguments}
    with pytest.raises(DataError, match=message):
        load(request.pop("name"), request.pop("part"), **request)


def test_an_image_in_a_folder_that_is_none_is_named(pets):
    (pets / "bee" / "3.png").write_bytes(b"no image at all")
    with pytest.raises(DataError, match=r"bee/3\.png cannot be decoded"):
        prepare("folder", pets, split=SPLIT)


# ---- images of every kind


def test_a_sideways_photograph_is_turned_upright(tmp_path):
    image = Image.new("RGB", (84, 84), "black")
    image.paste("white", (0, 0, 84, 42))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned a quarter clockwise
    image.save(tmp_path / "a.jpg", exif=exif, quality=100)
    content = encode(Picture("a.jpg", tmp_path / "a.jpg"), 84, True, "exact")
    assert content[8:12] == b"WEBP"  # not kept as it is, though it is a JPEG of the right size
    with Image.open(tmp_path / "a.jpg") as opened:
        upright = np.asarray(as_rgb(opened))
    assert upright[40, 80].min() > 250
    assert upright[40, 3].max() < 5


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("L", 90, (90, 90, 90)),
        ("1", 1, (255, 255, 255)),
        ("RGBA", (255, 0, 0, 0), (255, 255, 255)),
        ("RGBA", (255, 0, 0, 255), (255, 0, 0)),
        ("LA", (0, 0), (255, 255, 255)),
        ("I;16", 90 * 256, (90, 90, 90)),
        ("CMYK", (0, 255, 255, 0), (255, 0, 0)),
    ],
)
def test_every_kind_of_image_becomes_rgb(mode, colour, expected):
    assert as_rgb(Image.new(mode, (5, 4), colour)).getpixel((2, 2)) == expected


def test_a_transparent_palette_is_laid_over_white(tmp_path):
    image = Image.new("P", (4, 4), 0)
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putpixel((0, 0), 1)
    image.save(tmp_path / "a.png", transparency=0)
    with Image.open(tmp_path / "a.png") as opened:
        rgb = as_rgb(opened)
    assert rgb.getpixel((0, 0)) == (200, 100, 50)
    assert rgb.getpixel((3, 3)) == (255, 255, 255)


def test_a_box_outside_its_image_is_refused():
    assert clipped((-3.0, 2.5, 10.0, 100.0), 20, 30) == (0, 2, 7, 30)
    with pytest.raises(ValueError, match="lies outside"):
        clipped((50.0, 0.0, 10.0, 10.0), 20, 30)
