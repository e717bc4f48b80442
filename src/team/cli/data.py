"""``team data prepare | info | download``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from team.cli.shared import Name


def prepare(
    name: Name,
    root: Path,
    split: str | None = None,
    size: int = 84,
    crop: bool = True,
    encoding: Literal["exact", "jpeg"] = "exact",
    parts: tuple[str, ...] = ("train", "val", "test"),
) -> None:
    """Read a data set from its official files, once, into the cache.

    Args:
        name: cifar100, miniimagenet, cub, or folder (one's own class/image.jpg).
        root: Folder that holds the official archive or what was unpacked from it.
        split: Class split: a name, a JSON file, or for a folder fractions such as 0.64-0.16-0.2@0.
        size: Side of the stored images.
        crop: CUB: cut out the bounding boxes.
        encoding: Lossless, or JPEG of quality 95 where files must be small.
        parts: Which parts of the split to prepare.
    """
    from team.data import prepare as prepare_data

    done = prepare_data(name, root, split=split, size=size, crop=crop, encoding=encoding, parts=parts)
    for part, index in done.items():
        print(f"{part}: {index.images} images of {len(index.classes)} classes in {len(index.shards)} shards")


def info(
    name: Name,
    root: Path | None = None,
    split: str | None = None,
    size: int = 84,
    crop: bool = True,
    encoding: Literal["exact", "jpeg"] = "exact",
    sheet: Path | None = None,
    part: str = "train",
) -> None:
    """Show classes, counts and checksums of a data set, and write a sheet of sample images.

    Args:
        name: cifar100, miniimagenet, cub, or folder.
        root: The folder, for a data set of one's own.
        split: Class split, as for prepare.
        size: Side of the stored images.
        crop: CUB: bounding boxes cut out.
        encoding: As prepared.
        sheet: Write sample images to this PNG file.
        part: The part the sheet shows.
    """
    from rich.console import Console
    from rich.table import Table

    from team.data import contact_sheet, load
    from team.data import info as data_info

    about = data_info(name, root=root, split=split, size=size, crop=crop, encoding=encoding)
    table = Table(title=f"{about.title}, split {about.split}, {about.size}×{about.size}", caption=str(about.folder))
    for heading in ("part", "classes", "images", "per class", "shards", "MiB", "checksum"):
        table.add_column(heading)
    for which, entry in about.parts.items():
        if not entry.prepared:
            note = entry.problem or "not prepared"
            table.add_row(which, str(len(entry.classes) or "?"), note)
            continue
        per_class = f"{entry.smallest}" if entry.smallest == entry.largest else f"{entry.smallest} to {entry.largest}"
        size_text = f"{entry.bytes / 2**20:.0f}"
        counts = (str(len(entry.classes)), str(entry.images), per_class, str(entry.shards), size_text)
        table.add_row(which, *counts, entry.checksum[:12])
    Console().print(table)
    print(f"splits: {', '.join(about.splits)}")
    if sheet is not None:
        images = load(name, part, root=root, split=split, size=size, crop=crop, encoding=encoding)
        print(f"sample images: {contact_sheet(images, sheet)}")


def download(name: Name, root: Path) -> None:
    """Download a data set from its official address (resumes, checks), or say how to get it by hand.

    Args:
        name: cifar100 or cub.
        root: Folder to put the archive into.
    """
    from team.data import download as fetch

    print(f"downloaded: {fetch(name, root)}")
