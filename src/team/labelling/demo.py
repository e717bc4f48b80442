"""A worked example of labelling a folder, on symbols drawn for it from matplotlib's fonts: nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from team.data.glyphs import render_masters
from team.files import atomic_path
from team.labelling.folder import FolderLabels, label_folder
from team.labelling.rows import LabelledImage
from team.labelling.tables import write_table

CLASSES = {"aeroplane": "✈", "knight": "♞", "snowman": "☃", "telephone": "☎", "umbrella": "☂"}
PER_CLASS = 40
_FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono")
_SIDE = 160


def draw_example(out: Path, *, seed: int = 0) -> dict[str, str]:
    """Write pictures to ``out/images``, shuffled, and a label of each class to ``out/few.csv``; give the truth."""
    random = np.random.default_rng(seed)
    masks, owners = render_masters(list(CLASSES.values()), _FONTS)
    shapes = [np.asarray(masks[owners == number] * 255, np.uint8) for number in range(len(CLASSES))]
    truth: dict[str, str] = {}
    for position, number in enumerate(random.permutation(np.repeat(np.arange(len(CLASSES)), PER_CLASS)).tolist()):
        file = out / "images" / f"{position:03d}.png"
        truth[file.name] = list(CLASSES)[number]
        with atomic_path(file) as temporary:
            _picture(shapes[number], random).save(temporary, "PNG")
    firsts = {label: path for path, label in reversed(truth.items())}
    write_table([LabelledImage(path, label, 1.0, "human") for label, path in sorted(firsts.items())], out / "few.csv")
    return truth


def run_demo(out: Path, *, method: str | None = None) -> FolderLabels:
    """Draw the example, label it from one label per class, correct the least sure, and say how right all this is."""
    truth = draw_example(out)
    print(f"{len(truth)} pictures of {len(CLASSES)} kinds in {out / 'images'}; one of each is labelled in few.csv")
    result = label_folder(out / "images", out / "few.csv", method=method)
    print(f"labels that are right: {_accuracy(result, truth):.1f} %")
    doubtful = result.least_sure(5)
    result.fix({row.path: truth[row.path] for row in doubtful})
    print(f"after a person has labelled the {len(doubtful)} least sure: {_accuracy(result, truth):.1f} %")
    result.export(out / "all.csv")
    print(f"all labels: {out / 'all.csv'}")
    return result


def _picture(shapes: np.ndarray, random: np.random.Generator) -> Image.Image:
    """One of ``shapes`` (uint8 masks ``[V, 64, 64]``), stretched, turned and moved, in two colours."""
    width, height = (int(side) for side in random.integers(76, 116, 2))
    shape = Image.fromarray(shapes[random.integers(len(shapes))]).resize((width, height), Image.Resampling.BICUBIC)
    shape = shape.rotate(random.uniform(-20, 20), Image.Resampling.BICUBIC, expand=True)
    dark, light = (tuple(random.integers(*span, 3).tolist()) for span in ((0, 110), (150, 256)))
    ink, paper = (dark, light) if random.random() < 0.5 else (light, dark)
    picture = Image.new("RGB", (_SIDE, _SIDE), paper)
    left, top = ((_SIDE - side) // 2 + int(random.integers(-15, 16)) for side in shape.size)
    picture.paste(ink, (left, top), shape)
    return picture


def _accuracy(result: FolderLabels, truth: dict[str, str]) -> float:
    return 100 * float(np.mean([row.label == truth[row.path] for row in result.rows]))
