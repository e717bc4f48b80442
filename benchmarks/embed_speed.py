"""Images per second of embedding a folder: ours beside eager torch with Pillow in a loop, in one run.

python benchmarks/embed_speed.py FOLDER
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro
from PIL import Image

from team.labelling.embed_folder import embed_folder
from team.labelling.embedders import Embedder, efficientnet_lite0
from team.labelling.images import find_images
from team.labelling.runtime import fast


@torch.no_grad()
def plain_loop(folder: Path, paths: list[str], embedder: Embedder) -> np.ndarray:
    """What one would write first: open, resize, to a contiguous tensor as torchvision's ToTensor does, embed."""
    network = embedder.network.eval()
    rows = []
    for path in paths:
        image = Image.open(folder / path).convert("RGB").resize((224, 224), Image.Resampling.BICUBIC)
        pixels = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).contiguous().float()
        rows.append(network(((pixels - 127) / 128)[None])[0])
    return torch.stack(rows).numpy()


def main(folder: Annotated[Path, tyro.conf.Positional], loop: int = 100) -> None:
    """Embed a folder with an empty cache; the plain loop takes its first images only.

    Args:
        folder: Photographs; a thousand or so.
        loop: Images for the plain loop.
    """
    embedder = efficientnet_lite0()
    paths, _ = find_images(folder)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TEAM_CACHE"] = cache
        fast(embedder)  # exported beforehand, as for all but the very first folder
        plain_loop(folder, paths[:5], embedder)
        start = time.perf_counter()
        ours = embed_folder(folder, embedder=embedder)
        ours_rate = len(ours.paths) / (time.perf_counter() - start)
        start = time.perf_counter()
        slow = plain_loop(folder, paths[:loop], embedder)
        slow_rate = len(slow) / (time.perf_counter() - start)
    both = [(ours.features[ours.paths.index(path)], row) for path, row in zip(paths, slow, strict=False)]
    cosine = np.mean([a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in both])
    print(
        f"ours {ours_rate:.1f} images/s, plain loop {slow_rate:.1f} images/s: {ours_rate / slow_rate:.1f} times as fast"
    )
    print(f"mean cosine of the features of both: {cosine:.4f}")


if __name__ == "__main__":
    tyro.cli(main)
