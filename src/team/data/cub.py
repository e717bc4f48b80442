"""CUB-200-2011 (Wah et al., 2011): 11 788 photographs of 200 species of birds, each with a bounding box."""

from __future__ import annotations

from pathlib import Path

from team.data.source import DataError, DataSet, Picture, Reading, require

_LISTS = ("classes.txt", "images.txt", "image_class_labels.txt", "bounding_boxes.txt")


def _table(path: Path, columns: int) -> dict[str, list[str]]:
    """The lines of one of the official lists, by the number they begin with."""
    rows = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        values = line.split()
        if len(values) != columns:
            raise DataError(f"{path} line {number} has {len(values)} values, not {columns}: get CUB-200-2011 again")
        rows[values[0]] = values[1:]
    return rows


def read(folder: Path, dataset: DataSet, part: str, classes: tuple[str, ...] | None) -> Reading:
    files = tuple(require(folder / name, dataset) for name in _LISTS)
    class_names, images, labels, boxes = (_table(file, n) for file, n in zip(files, (2, 2, 2, 5), strict=True))
    dataset.check_total(len(images), files[1])
    for file, table in zip(files[2:], (labels, boxes), strict=True):
        if table.keys() != images.keys():
            raise DataError(f"{file} does not list the same images as images.txt: get {dataset.title} again")
    wanted = tuple(name for (name,) in class_names.values()) if classes is None else classes
    pictures: dict[str, list[Picture]] = {name: [] for name in wanted}
    for number, (name,) in images.items():
        if (label := class_names.get(labels[number][0], [""])[0]) in pictures:
            path = require(folder / "images" / name, dataset)
            left, top, width, height = map(float, boxes[number])
            pictures[label].append(Picture(f"images/{name}", path, (left, top, width, height)))
    dataset.check_classes(pictures, wanted, folder)
    return Reading(pictures, files)


CUB = DataSet(
    name="cub",
    title="CUB-200-2011",
    read=read,
    folder="CUB_200_2011",
    archive="CUB_200_2011.tgz",
    marks=("images.txt", "bounding_boxes.txt"),
    by_hand="Put CUB_200_2011.tgz from https://data.caltech.edu/records/65de6-vp158, or the folder CUB_200_2011 it "
    "unpacks to, into the folder given as root",
    images=11_788,
    boxes=True,
    default_split="closerlook",
    url="https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
    md5="97eceeb196236b17998738112f37df78",
)
