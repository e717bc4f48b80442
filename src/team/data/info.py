"""What a data set is and what of it is prepared here, for a person to read; and a sheet of its images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image, ImageDraw

from team.data.images import ImageSet
from team.data.request import Request
from team.data.source import DataError
from team.data.splits import SplitChoice, split_names
from team.files import atomic_path


@dataclass(frozen=True)
class PartInfo:
    """One part. Until it is prepared, only the classes of a published split are known.

    images: how many; smallest, largest: images in the smallest and the largest class
    checksum: of the content, as in :class:`ImageSet`; source: of the files it was made from
    problem: why the cache of this part cannot be used, or empty
    """

    classes: tuple[str, ...]
    prepared: bool = False
    images: int = 0
    smallest: int = 0
    largest: int = 0
    shards: int = 0
    bytes: int = 0
    checksum: str = ""
    source: str = ""
    problem: str = ""


@dataclass(frozen=True)
class DataInfo:
    """A data set in one choice of settings; ``folder`` is where its prepared form is or would be."""

    name: str
    title: str
    split: str
    splits: tuple[str, ...]
    size: int
    crop: bool
    encoding: str
    folder: Path
    parts: dict[str, PartInfo]
    by_hand: str


def info(
    name: str,
    *,
    root: str | Path | None = None,
    split: SplitChoice = None,
    size: int = 84,
    crop: bool = True,
    encoding: str = "exact",
    cache: str | Path | None = None,
) -> DataInfo:
    """Describe a data set from its split and its index files; no image is read. ``root`` only names an own folder."""
    request = Request.checked(name, None, root, split, size, crop, encoding, cache)
    settings, dataset = request.settings, request.dataset
    parts = {part: _part(request.of(part)) for part in request.split.parts}
    return DataInfo(
        name=name,
        title=dataset.title,
        split=settings.split,
        splits=split_names(dataset),
        size=size,
        crop=settings.crop,
        encoding=encoding,
        folder=request.cache / settings.key,
        parts=parts,
        by_hand=dataset.by_hand,
    )


def _part(request: Request) -> PartInfo:
    classes = request.split.classes(request.settings.part) or ()
    try:
        index = request.index()
    except DataError as error:
        return PartInfo(classes, problem=str(error))
    if index is None:
        return PartInfo(classes)
    stored = sum(shard.bytes for shard in index.shards)
    return PartInfo(
        classes=index.classes,
        prepared=True,
        images=index.images,
        smallest=min(index.counts),
        largest=max(index.counts),
        shards=len(index.shards),
        bytes=stored,
        checksum=index.checksum,
        source=index.source,
    )


def contact_sheet(images: ImageSet, path: str | Path, *, rows: int = 10, columns: int = 10, seed: int = 0) -> Path:
    """Write a PNG with one class per row, its name above ``columns`` of its images; classes and images by ``seed``."""
    generator = torch.Generator().manual_seed(seed)
    height, width = images.images.shape[2:]
    title, gap = 14, 2
    chosen = torch.randperm(len(images.classes), generator=generator)[:rows].sort().values.tolist()
    sheet = Image.new("RGB", (columns * (width + gap) + gap, len(chosen) * (height + title + gap) + gap), "white")
    draw = ImageDraw.Draw(sheet)
    for row, label in enumerate(chosen):
        top = gap + row * (height + title + gap)
        draw.text((gap, top), images.classes[label].encode("ascii", "replace").decode(), fill="black")
        members = (images.labels == label).nonzero()[:, 0].cpu()
        members = members[torch.randperm(len(members), generator=generator)[:columns]]
        for column, position in enumerate(members.tolist()):
            pixels = images.images[position].permute(1, 2, 0).cpu().contiguous().numpy()
            sheet.paste(Image.fromarray(pixels), (gap + column * (width + gap), top + title))
    target = Path(path)
    with atomic_path(target) as temporary:
        sheet.save(temporary, "PNG")
    return target
