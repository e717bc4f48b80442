"""Each official form of each data set, in miniature, read by the real code: pixels, counts, order, and errors."""

from __future__ import annotations

import csv
import io
import pickle
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from team.data import DATASETS, DataError, load, prepare

SPLIT = {"train": ["b", "a"], "val": ["c"], "test": ["d"]}
NAMES = ["a", "b", "c", "d"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TEAM_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def expect(monkeypatch):
    """Replace what is known about a data set, so that four classes of a few images are the whole of it."""

    def change(name, **known):
        monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], **known))

    return change


def noise(n, height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, height, width, 3), np.uint8)


def tar_of(folder: Path, target: Path) -> Path:
    with tarfile.open(target, "w:gz") as tar:
        tar.add(folder, folder.name)
    return target


# ---- CIFAR-100


@pytest.fixture
def cifar(tmp_path, expect):
    """Four classes, two images each in "train" and one in "test", as Python 2 wrote them."""
    expect("cifar100", images=12, per_class=3)
    folder = tmp_path / "source" / "cifar-100-python"
    folder.mkdir(parents=True)
    pixels = noise(12, 32, 32)
    rows = pixels.transpose(0, 3, 1, 2).reshape(12, 3072)
    for name, chosen, labels in (("train", slice(0, 8), [0, 1, 2, 3] * 2), ("test", slice(8, 12), [3, 2, 1, 0])):
        content = {b"data": rows[chosen], b"fine_labels": labels, b"coarse_labels": labels}
        (folder / name).write_bytes(pickle.dumps(content, 2))
    meta = {b"fine_label_names": [name.encode() for name in NAMES]}
    (folder / "meta").write_bytes(pickle.dumps(meta, 2))
    return folder, pixels


def test_cifar_rows_become_images_of_their_class_in_the_order_of_the_split(cifar):
    folder, pixels = cifar
    images = load("cifar100", "train", root=folder.parent, split=SPLIT, size=32)
    assert images.classes == ("b", "a")
    assert images.labels.tolist() == [0, 0, 0, 1, 1, 1]
    expected = torch.from_numpy(pixels[[1, 5, 10, 0, 4, 11]]).permute(0, 3, 1, 2)
    assert torch.equal(images.images, expected)


def test_cifar_archive_and_folder_give_the_same_images(cifar, tmp_path):
    folder, _ = cifar
    archive = tar_of(folder, tmp_path / "cifar-100-python.tar.gz")
    from_archive = load("cifar100", "val", root=archive, split=SPLIT, cache=tmp_path / "one")
    found_inside = load("cifar100", "val", root=tmp_path, split=SPLIT, cache=tmp_path / "two")
    from_folder = load("cifar100", "val", root=folder, split=SPLIT, cache=tmp_path / "three")
    assert from_archive.checksum == found_inside.checksum == from_folder.checksum
    assert torch.equal(from_archive.images, from_folder.images)
    assert not list(tmp_path.rglob(".unpack-*"))


def test_an_enlarged_image_is_kept_small_and_enlarged_on_reading(cifar):
    folder, pixels = cifar
    images = load("cifar100", "test", root=folder, split=SPLIT, size=84)
    expected = np.asarray(Image.fromarray(pixels[3]).resize((84, 84), Image.Resampling.BICUBIC))
    assert torch.equal(images.images[0], torch.from_numpy(expected.copy()).permute(2, 0, 1))


def test_cifar_with_an_image_too_few_is_refused(cifar, expect):
    folder, _ = cifar
    expect("cifar100", images=13)
    with pytest.raises(DataError, match=r"cifar-100-python lists 12 images where CIFAR-100 has 13"):
        prepare("cifar100", folder, split=SPLIT)
    expect("cifar100", images=12, per_class=4)
    with pytest.raises(DataError, match=r"3 images of class 'b' where CIFAR-100 has 4"):
        prepare("cifar100", folder, split=SPLIT)


def test_a_truncated_pickle_a_missing_file_and_a_wrong_root_are_named(cifar, tmp_path):
    folder, _ = cifar
    train = folder / "train"
    train.write_bytes(train.read_bytes()[:500])
    with pytest.raises(DataError, match=r"train is cut short or damaged"):
        prepare("cifar100", folder, split=SPLIT)
    train.unlink()
    with pytest.raises(DataError, match=r"train is missing from this copy of CIFAR-100"):
        prepare("cifar100", folder, split=SPLIT)
    with pytest.raises(DataError, match=r"found no CIFAR-100 at .*nowhere, which does not exist.*cs\.toronto\.edu"):
        prepare("cifar100", tmp_path / "nowhere", split=SPLIT)


def test_a_truncated_archive_is_named(cifar, tmp_path):
    archive = tar_of(cifar[0], tmp_path / "cifar-100-python.tar.gz")
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with pytest.raises(DataError, match=r"cifar-100-python\.tar\.gz is cut short or damaged.*download it again"):
        prepare("cifar100", archive, split=SPLIT)
    archive.write_bytes(b"<html>not found</html>")
    with pytest.raises(DataError, match=r"cifar-100-python\.tar\.gz is cut short or damaged"):
        prepare("cifar100", archive, split=SPLIT)


@pytest.mark.parametrize("name", ["../escaped", "/tmp/escaped", "cifar-100-python/../../escaped"])
def test_an_archive_cannot_write_outside_its_folder(tmp_path, name):
    archive = tmp_path / "cifar-100-python.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = 4
        tar.addfile(member, io.BytesIO(b"evil"))
    with pytest.raises(DataError, match="leaves the folder"):
        prepare("cifar100", archive, split=SPLIT)
    assert not list(tmp_path.rglob("escaped"))


def test_links_in_an_archive_are_not_followed(cifar, tmp_path):
    folder, _ = cifar
    shutil.move(folder / "meta", tmp_path / "secret")
    (folder / "meta").symlink_to(tmp_path / "secret")
    archive = tar_of(folder, tmp_path / "cifar-100-python.tar.gz")
    with pytest.raises(DataError, match=r"meta is missing"):
        prepare("cifar100", archive, split=SPLIT)


# ---- CUB


@pytest.fixture
def cub(tmp_path, expect):
    """Two photographs of each of four species; the box of the first overruns the image to the right and below."""
    expect("cub", images=8)
    folder = tmp_path / "source" / "CUB_200_2011"
    pixels = noise(8, 60, 100)
    lists: dict[str, list[str]] = {name: [] for name in ("images", "image_class_labels", "bounding_boxes")}
    for number in range(8):
        name = f"{NAMES[number // 2]}/bird_{number}.png"  # PNG, so that pixels can be compared
        path = folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[number]).save(path)
        lists["images"].append(f"{number + 1} {name}")
        lists["image_class_labels"].append(f"{number + 1} {number // 2 + 1}")
        box = "80.0 40.0 30.0 30.0" if number == 0 else "10.0 5.0 40.0 30.0"
        lists["bounding_boxes"].append(f"{number + 1} {box}")
    lists["classes"] = [f"{number} {name}" for number, name in enumerate(NAMES, 1)]
    for name, lines in lists.items():
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return folder, pixels


def test_cub_is_cropped_to_its_boxes_and_boxes_are_clipped_to_the_image(cub):
    folder, pixels = cub
    images = load("cub", "train", root=folder.parent, split=SPLIT, size=20)
    crops = [pixels[2, 5:35, 10:50], pixels[3, 5:35, 10:50], pixels[0, 40:60, 80:100], pixels[1, 5:35, 10:50]]
    for found, crop in zip(images.images, crops, strict=True):
        expected = np.asarray(Image.fromarray(crop.copy()).resize((20, 20), Image.Resampling.BICUBIC))
        assert np.array_equal(found.permute(1, 2, 0), expected)


def test_cub_whole_photographs_have_a_cache_of_their_own(cub):
    folder, pixels = cub
    cropped = load("cub", "val", root=folder, split=SPLIT, size=20)
    whole = load("cub", "val", root=folder, split=SPLIT, size=20, crop=False)
    expected = np.asarray(Image.fromarray(pixels[4]).resize((20, 20), Image.Resampling.BICUBIC))
    assert np.array_equal(whole.images[0].permute(1, 2, 0), expected)
    assert cropped.checksum != whole.checksum


def test_cub_archive_gives_what_its_folder_gives(cub, tmp_path):
    archive = tar_of(cub[0], tmp_path / "CUB_200_2011.tgz")
    packed = load("cub", "test", root=archive, split=SPLIT, cache=tmp_path / "one")
    plain = load("cub", "test", root=cub[0], split=SPLIT, cache=tmp_path / "two")
    assert packed.checksum == plain.checksum


def test_a_photograph_that_does_not_decode_is_named(cub):
    folder, _ = cub
    bad = folder / "images" / "b" / "bird_3.png"
    bad.write_bytes(bad.read_bytes()[:300])
    with pytest.raises(DataError, match=r"CUB_200_2011: images/b/bird_3\.png cannot be decoded.*good copy"):
        prepare("cub", folder, split=SPLIT)


def test_lists_that_disagree_are_named(cub):
    folder, _ = cub
    boxes = folder / "bounding_boxes.txt"
    lines = boxes.read_text().splitlines()
    boxes.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(DataError, match=r"bounding_boxes\.txt does not list the same images"):
        prepare("cub", folder, split=SPLIT)
    boxes.write_text("\n".join([*lines[:-1], "8 1.0 2.0"]))
    with pytest.raises(DataError, match=r"bounding_boxes\.txt line 8 has 3 values, not 5"):
        prepare("cub", folder, split=SPLIT)


# ---- miniImageNet


@pytest.fixture
def mini(expect):
    expect("miniimagenet", per_class=2)
    return {part: noise(2 * len(names), 84, 84, seed) for seed, (part, names) in enumerate(SPLIT.items())}


def ravi_folder(folder: Path, pixels: dict[str, np.ndarray]) -> Path:
    (folder / "images").mkdir(parents=True)
    for part, names in SPLIT.items():
        rows = [(f"{name}{copy}.jpg", name) for name in names for copy in range(2)]
        for (file, _), image in zip(rows, pixels[part], strict=True):
            Image.fromarray(image).save(folder / "images" / file, quality=95)
        with open(folder / f"{part}.csv", "w", newline="") as lines:
            csv.writer(lines).writerows([("filename", "label"), *rows])
    return folder


def test_miniimagenet_jpegs_of_the_right_size_are_kept_byte_for_byte(mini, tmp_path):
    folder = ravi_folder(tmp_path / "miniImageNet", mini)
    index = prepare("miniimagenet", tmp_path, split=SPLIT)["train"]
    shard = (tmp_path / "cache" / "data" / index.settings.key / index.shards[0].file).read_bytes()
    assert (folder / "images" / "b0.jpg").read_bytes() in shard
    images = load("miniimagenet", "train", split=SPLIT)
    with Image.open(folder / "images" / "a1.jpg") as image:
        assert np.array_equal(images.images[3].permute(1, 2, 0), np.asarray(image))


def test_both_pickle_caches_give_their_pixels(mini, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    for part, names in SPLIT.items():
        positions = {name: [2 * i, 2 * i + 1] for i, name in enumerate(names)}
        content = {"image_data": mini[part], "class_dict": positions}
        (first / f"mini-imagenet-cache-{part}.pkl").write_bytes(pickle.dumps(content))
        labels = [7 + i // 2 for i in range(2 * len(names))]
        named = {name: 7 + i for i, name in enumerate(names)}
        content = {"data": mini[part], "labels": labels, "catname2label": named}
        spelled = "train_phase_train" if part == "train" else part
        (second / f"miniImageNet_category_split_{spelled}.pickle").write_bytes(pickle.dumps(content, 2))
    for folder in (first, second):
        images = load("miniimagenet", "train", root=folder, split=SPLIT, cache=folder / "cache")
        assert images.classes == ("b", "a")
        assert np.array_equal(images.images.permute(0, 2, 3, 1), mini["train"])


def test_miniimagenet_can_be_trained_on_without_the_test_classes(mini, tmp_path):
    folder = ravi_folder(tmp_path / "miniImageNet", mini)
    (folder / "test.csv").unlink()
    assert len(load("miniimagenet", "train", root=folder, split=SPLIT)) == 4
    with pytest.raises(DataError, match=r"no file of the test classes of miniImageNet"):
        load("miniimagenet", "test", root=folder, split=SPLIT)


def test_miniimagenet_missing_images_and_counts_are_named(mini, tmp_path, expect):
    folder = ravi_folder(tmp_path / "miniImageNet", mini)
    expect("miniimagenet", per_class=600)
    with pytest.raises(DataError, match=r"train\.csv has 2 images of class 'b' where miniImageNet has 600"):
        prepare("miniimagenet", folder, split=SPLIT)
    (folder / "images" / "c0.jpg").unlink()
    with pytest.raises(DataError, match=r"c0\.jpg is missing"):
        prepare("miniimagenet", folder, split=SPLIT, parts=["val"])
    (folder / "val.csv").write_text("picture;class\n")
    with pytest.raises(DataError, match=r"val\.csv should begin with the line 'filename,label'"):
        prepare("miniimagenet", folder, split=SPLIT, parts=["val"])
