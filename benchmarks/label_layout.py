"""Folders of real photographs as a person might have them: shuffled, with file names that tell nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from team.data import DATASETS
from team.data.pixels import as_rgb, clipped
from team.data.source import Picture, locate
from team.data.splits import Split
from team.files import write_json
from team.seeding import generator


def lay_out(dataset: str, root: Path, part: str, out: Path, *, per_class: int, seed: int = 0) -> dict[str, str]:
    """Write up to ``per_class`` images of each class of ``part`` as JPEG to ``out``; gives ``{file name: class}``.

    Birds are cut out by their boxes, as the data set's own papers do; small images stay as small as they are.
    """
    source = DATASETS[dataset]
    reading = source.read(locate(root, source), source, part, Split(source, None).classes(part))
    chosen: list[tuple[str, Picture]] = []
    for name, pictures in reading.pictures.items():
        order = torch.randperm(len(pictures), generator=generator(seed, "layout", name)).tolist()
        chosen += [(name, pictures[index]) for index in order[:per_class]]
    out.mkdir(parents=True, exist_ok=True)
    truth = {}
    for number, index in enumerate(torch.randperm(len(chosen), generator=generator(seed, "layout")).tolist()):
        name, picture = chosen[index]
        file = out / f"{number:05d}.jpg"
        truth[file.name] = name
        if not file.exists():
            _pixels(picture).save(file, quality=95, subsampling=0)
    write_json(out.parent / f"{out.name}.json", truth)
    return truth


def _pixels(picture: Picture) -> Image.Image:
    if not isinstance(picture.content, Path):
        return Image.fromarray(np.ascontiguousarray(picture.content))
    with Image.open(picture.content) as opened:
        image = as_rgb(opened)
    return image.crop(clipped(picture.box, *image.size)) if picture.box else image
