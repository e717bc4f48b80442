"""Claims about exports: they say what the labels are, whatever the names, and write only where they were told."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from team.labelling.export import FORMS, export
from team.labelling.given import given_labels, subfolder_labels
from team.labelling.images import find_images
from team.labelling.names import check_label, folder_names, from_cell, to_cell
from team.labelling.rows import LabelledImage
from team.labelling.tables import read_labels

HOSTILE_LABELS = [
    "../../escape",
    "..",
    ".",
    "/absolute",
    "a/b\\c",
    'quo"te, comma\nnew line',
    "=1+cmd|' /C calc'!A0",
    "'=quoted",
    "''",
    "-dash",
    "@at",
    "tab\tand\rreturn",
    "CON",
    "con.txt",
    "Cat",
    "cat",
    "CAT ",
    "é",
    "e\u0301",
    "猫🐈",
    "100%",
    "100%25",
    "classes.json",
    "labels.csv",
    "long" * 100,
    "\u202eright to left",
    "<script>alert(1)</script>",
]
HOSTILE_PATHS = [
    "plain.png",
    "=cmd.png",
    "'=cmd.png",
    'say "hi", you.png',
    "new\nline.png",
    "a/b/ünïcödé 猫.png",
    "a/%2e%2e/x.png",
    "dots../x...png",
    "a/-rf.png",
    "back\\slash.png",
    " space .png",
    "C:colon.png",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    for number, name in enumerate(HOSTILE_PATHS):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((3, 4 + number, 3), number, np.uint8)).save(root / name, "PNG")
    return root


@pytest.fixture
def rows(folder: Path) -> list[LabelledImage]:
    """Each image with a label of its own."""
    paths, _ = find_images(folder)
    assert paths == sorted(HOSTILE_PATHS)
    sources = ("human", "accepted", "predicted")
    return [LabelledImage(path, HOSTILE_LABELS[n], 0.5, sources[n % 3]) for n, path in enumerate(paths)]  # type: ignore[arg-type]


def everything(root: Path) -> set[str]:
    return {str(path) for path in root.rglob("*")}


@pytest.mark.parametrize("shift", range(0, len(HOSTILE_LABELS), len(HOSTILE_PATHS)))
@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_written_outside_and_no_source_changes(form: str, shift: int, folder: Path, tmp_path: Path) -> None:
    paths, _ = find_images(folder)
    labels = (HOSTILE_LABELS * 2)[shift : shift + len(paths)]
    rows = [LabelledImage(path, label, 1.0, "human") for path, label in zip(paths, labels, strict=True)]
    before = {path: (folder / path).read_bytes() for path in paths}
    outside = everything(tmp_path)
    out = tmp_path / "out"
    export(rows, folder, out, form)  # type: ignore[arg-type]
    new = everything(tmp_path) - outside
    assert all(Path(path) == out or Path(path).is_relative_to(out) for path in new)
    assert {path: (folder / path).read_bytes() for path in paths} == before


def test_a_table_comes_back_as_it_went(folder: Path, rows: list[LabelledImage], tmp_path: Path) -> None:
    export(rows, folder, tmp_path / "all.csv", "csv")
    expected = {row.path: row.label for row in rows if row.source != "predicted"}
    assert read_labels(tmp_path / "all.csv", folder) == expected
    assert given_labels(folder, [row.path for row in rows], tmp_path / "all.csv", subfolders=None) == expected


def test_no_cell_of_a_table_begins_a_formula(folder: Path, tmp_path: Path) -> None:
    for start in range(0, len(HOSTILE_LABELS), len(HOSTILE_PATHS)):
        labels = HOSTILE_LABELS[start : start + len(HOSTILE_PATHS)]
        rows = [LabelledImage(path, label, 0.5, "human") for path, label in zip(HOSTILE_PATHS, labels, strict=False)]
        export(rows, folder, tmp_path / "all.csv", "csv")
        with open(tmp_path / "all.csv", newline="", encoding="utf-8") as file:
            cells = [cell for line in csv.reader(file) for cell in line]
        assert not [cell for cell in cells if cell[0] in "=+-@\t\r\n＝＋－＠"]


@given(st.text())
def test_any_text_survives_a_cell(text: str) -> None:
    assert from_cell(to_cell(text)) == text


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), unique=True, max_size=8))
def test_any_class_names_become_different_plain_folder_names(labels: list[str]) -> None:
    names = folder_names(check_label(label) for label in labels)
    assert len({name.casefold() for name in names.values()}) == len(labels)
    for name in names.values():
        assert name not in (".", "..")
        assert name[0] != "."
        assert not set(name) & set('/\\:*?"<>|\0\n')
        assert len(name.encode()) <= 120


def test_folders_come_back_as_labels(folder: Path, tmp_path: Path) -> None:
    paths, _ = find_images(folder)
    for start in range(0, len(HOSTILE_LABELS), len(paths)):
        labels = (HOSTILE_LABELS * 2)[start : start + len(paths)]
        rows = [LabelledImage(path, label, 1.0, "human") for path, label in zip(paths, labels, strict=True)]
        out = tmp_path / f"folders{start}"
        export(rows, folder, out, "folders")
        found, unusable = find_images(out)
        assert not unusable
        read = {path.split("/", 1)[1]: label for path, label in subfolder_labels(out, found).items()}
        assert read == {row.path: row.label for row in rows}
        for path in found:
            assert (out / path).read_bytes() == (folder / path.split("/", 1)[1]).read_bytes()


def test_coco_names_every_image_and_category(folder: Path, rows: list[LabelledImage], tmp_path: Path) -> None:
    export(rows, folder, tmp_path / "coco.json", "coco")
    content = json.loads((tmp_path / "coco.json").read_text(encoding="utf-8"))
    files = {image["id"]: image for image in content["images"]}
    names = {category["id"]: category["name"] for category in content["categories"]}
    read = {files[a["image_id"]]["file_name"]: names[a["category_id"]] for a in content["annotations"]}
    assert read == {row.path: row.label for row in rows}
    for image in files.values():
        with Image.open(folder / image["file_name"]) as opened:
            assert (image["width"], image["height"]) == opened.size


def test_label_studio_tells_people_from_predictions(folder: Path, rows: list[LabelledImage], tmp_path: Path) -> None:
    export(rows, folder, tmp_path / "tasks.json", "label-studio")
    tasks = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
    for task, row in zip(tasks, rows, strict=True):
        assert unquote(task["data"]["image"].removeprefix("/data/local-files/?d=")) == row.path
        kind = "predictions" if row.source == "predicted" else "annotations"
        (answer,) = task[kind]
        assert answer["result"][0]["value"]["choices"] == [row.label]
        assert ("predictions" in task) != ("annotations" in task)


def test_imagefolder_describes_the_files_beside_it(folder: Path, rows: list[LabelledImage], tmp_path: Path) -> None:
    export(rows, folder, tmp_path / "out", "imagefolder")
    lines = (tmp_path / "out/metadata.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    facts = [json.loads(line) for line in lines]
    assert {fact["file_name"]: fact["label"] for fact in facts} == {row.path: row.label for row in rows}
    for row in rows:
        assert (tmp_path / "out" / row.path).read_bytes() == (folder / row.path).read_bytes()


def test_links_lead_to_the_source_and_copies_stand_alone(
    folder: Path, rows: list[LabelledImage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    export(rows, Path("source"), Path("sub/linked"), "imagefolder", link=True)
    export(rows, Path("source"), Path("sub/copied"), "imagefolder")
    for row in rows:
        link = tmp_path / "sub/linked" / row.path
        assert link.is_symlink()
        assert not os.path.isabs(os.readlink(link))
        assert link.resolve() == (folder / row.path).resolve()
        assert not (tmp_path / "sub/copied" / row.path).is_symlink()


def test_places_that_would_touch_the_source_are_refused(
    folder: Path, rows: list[LabelledImage], tmp_path: Path
) -> None:
    (tmp_path / "alias").symlink_to(folder)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    before = everything(tmp_path)
    for out in (folder, folder / "new", tmp_path, tmp_path / "alias/new", folder / "a/../new"):
        with pytest.raises(ValueError, match="contain one another"):
            export(rows, folder, out, "folders")
    with pytest.raises(ValueError, match="not an empty folder"):
        export(rows, folder, tmp_path / "full", "imagefolder")
    with pytest.raises(ValueError, match="has the name of an image"):
        export(rows, folder, folder / "plain.png", "csv")
    with pytest.raises(ValueError, match="is a folder"):
        export(rows, folder, folder, "coco")
    with pytest.raises(ValueError, match="there is no form"):
        export(rows, folder, tmp_path / "x", "xml")  # type: ignore[arg-type]
    assert everything(tmp_path) == before


@pytest.mark.parametrize("path", ["../x.png", "/etc/passwd", "a/../../x.png", "", "a\0b.png"])
def test_rows_that_point_outside_are_refused(path: str, folder: Path, tmp_path: Path) -> None:
    for form in FORMS:
        with pytest.raises(ValueError, match="not a path below"):
            export([LabelledImage(path, "x", 1.0, "human")], folder, tmp_path / "out", form)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_a_failed_export_leaves_nothing_behind(folder: Path, rows: list[LabelledImage], tmp_path: Path) -> None:
    gone = [*rows, LabelledImage("gone.png", "x", 1.0, "human")]
    before = everything(tmp_path)
    with pytest.raises(FileNotFoundError):
        export(gone, folder, tmp_path / "out", "folders")
    assert everything(tmp_path) == before


def test_names_that_are_not_unicode_are_reported(folder: Path) -> None:
    bad = os.fsencode(folder) + b"/\xff.png"
    try:
        with open(bad, "wb"):
            pass
    except OSError:
        pytest.skip("this file system takes no such name")
    paths, unusable = find_images(folder)
    assert paths == sorted(HOSTILE_PATHS)
    assert unusable == [("\\xff.png", "its name is not valid UTF-8: rename it")]
