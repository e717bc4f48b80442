"""Images per second of embedding a folder: ours beside eager torch with Pillow in a loop, in one run.

    python benchmarks/embed_speed.py FOLDER

writes results/bench/embed-speed.json and the page results/embedding.md. Ways take turns, so that a machine that is busy
for a while slows them all, and ratios are those of the same turn. The loop is run with torch's threads as they are and
with one, and the faster of both counts. A turn during which other programs took more than a small share of the machine
is made again: threads of torch that wait for a core that others use slow the loop down out of all proportion.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sized
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import PIL
import torch
import tyro
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from team.files import write_json, write_text
from team.labelling.embed_folder import FolderFeatures, embed_folder
from team.labelling.embedders import Embedder, Precision, efficientnet_lite0
from team.labelling.images import find_images
from team.labelling.ort import onnxruntime
from team.labelling.runtime import fast
from team.provenance import commit, hardware

TITLES = {
    "int8": "ours (the default, in bytes)",
    "float32": "ours in floats",
    "loop": "eager torch with Pillow in a loop",
    "loop, one thread": "the same, with one thread",
}


@torch.no_grad()
def plain_loop(folder: Path, paths: list[str], embedder: Embedder, most: float = 5.0) -> NDArray[np.float32]:
    """What one would write first: open, resize, to a contiguous tensor as torchvision's ToTensor does, embed.

    It ends with the paths, or after so many seconds.
    """
    network = embedder.network.eval()
    rows: list[Tensor] = []
    start = time.perf_counter()
    for path in paths:
        image = Image.open(folder / path).convert("RGB").resize((224, 224), Image.Resampling.BICUBIC)
        pixels = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).contiguous().float()
        rows.append(network(((pixels - 127) / 128)[None])[0])
        if time.perf_counter() - start > most:
            break
    return torch.stack(rows).numpy()


def one_thread(folder: Path, paths: list[str], embedder: Embedder) -> NDArray[np.float32]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return plain_loop(folder, paths, embedder)
    finally:
        torch.set_num_threads(threads)


def busy() -> tuple[float, float]:
    """Seconds of all cores that were in use so far, and those of them that were this program's."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    idle = ticks[3] + ticks[4]
    return (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK"), time.process_time()


def ours(folder: Path, embedder: Embedder) -> FolderFeatures:
    """With an empty cache, but for the exported network: that is made once, before the very first folder."""
    with tempfile.TemporaryDirectory() as cache:
        exported = Path(os.environ["TEAM_CACHE"])
        os.environ["TEAM_CACHE"] = cache
        try:
            Path(cache, "embedders").symlink_to(exported / "embedders")
            return embed_folder(folder, embedder=embedder)
        finally:
            os.environ["TEAM_CACHE"] = str(exported)


def rate(work: Callable[[], Sized]) -> tuple[float, Any]:
    """Rows of the answer per second, and the answer."""
    start = time.perf_counter()
    answer = work()
    return len(answer) / (time.perf_counter() - start), answer


def measure(folder: Path, loop: int, turns: int, quiet: float) -> dict[str, Any]:
    """Rates of all ways, turn by turn, and how close their features are."""
    paths, _ = find_images(folder)
    some = paths[:: max(1, len(paths) // loop)][:loop]
    precisions: tuple[Precision, ...] = ("int8", "float32")
    networks = {name: efficientnet_lite0(name) for name in precisions}
    for network in networks.values():
        fast(network)
    plain_loop(folder, some[:5], networks["float32"])
    found: list[dict[str, float]] = []
    repeated = 0
    while len(found) < turns:
        before, start = busy(), time.perf_counter()
        rates: dict[str, float] = {}
        rates["float32"], _ = rate(lambda: ours(folder, networks["float32"]).features)
        rates["loop"], slow = rate(lambda: plain_loop(folder, some, networks["float32"]))
        rates["int8"], features = rate(lambda: ours(folder, networks["int8"]).features)
        rates["loop, one thread"], _ = rate(lambda: one_thread(folder, some, networks["float32"]))
        taken, after = (time.perf_counter() - start) * len(os.sched_getaffinity(0)), busy()
        others = max(0.0, (after[0] - before[0] - after[1] + before[1]) / taken)
        rates["others"] = others
        counts = others <= quiet
        repeated += not counts
        print({name: round(value, 3) for name, value in rates.items()}, "" if counts else "again", flush=True)
        if counts:
            found.append({name: round(value, 3) for name, value in rates.items()})
    rows = features[[paths.index(path) for path in some[: len(slow)]]]
    cosines = (rows * slow).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(slow, axis=1)
    return {
        "images": len(paths),
        "images_of_the_loop": len(some),
        "turns": found,
        "others_at_most": quiet,
        "turns_repeated": repeated,
        "images_per_second": {name: round(median(turn[name] for turn in found), 1) for name in TITLES},
        "times_as_fast": {name: summary(found, name) for name in networks},
        "cosine_to_the_loop": {"mean": round(float(cosines.mean()), 4), "least": round(float(cosines.min()), 4)},
    }


def summary(turns: list[dict[str, float]], name: str) -> dict[str, float]:
    """Of the ratios to the faster loop of the same turn."""
    ratios = [turn[name] / max(turn["loop"], turn["loop, one thread"]) for turn in turns]
    return {"median": round(median(ratios), 2), "least": round(min(ratios), 2), "most": round(max(ratios), 2)}


def write_page(facts: dict[str, Any], path: Path) -> None:
    ratio, in_floats = facts["times_as_fast"]["int8"], facts["times_as_fast"]["float32"]
    fastest = max(max(turn["loop"], turn["loop, one thread"]) for turn in facts["turns"])
    beside = facts["images_per_second"]["int8"] / fastest
    lines = [
        "# Speed of embedding a folder\n",
        "Generated by `benchmarks/embed_speed.py`; do not edit.",
        f"{facts['images']} photographs, from file to features, {len(facts['turns'])} turns;",
        f"the loops take {facts['images_of_the_loop']} of them. Other programs took at most",
        f"{facts['others_at_most']:.0%} of the machine.",
        f"{facts['hardware']}, torch {facts['torch']},",
        f"Pillow {facts['pillow']}, ONNX Runtime {facts['onnxruntime']}.\n",
        "| way | images per second (median) |",
        "|---|---:|",
        *(f"| {title} | {facts['images_per_second'][name]:.0f} |" for name, title in TITLES.items()),
        "\nIn the same turn, and beside the faster of the two loops,",
        f"ours is {ratio['median']:.1f} times as fast (median; from {ratio['least']:.1f} to {ratio['most']:.1f}),",
        f"and in floats {in_floats['median']:.1f} times.",
        f"Beside the fastest loop of any turn ({fastest:.0f} per second) its median is {beside:.1f} times as fast.",
        f"The mean cosine of our features to the loop's is {facts['cosine_to_the_loop']['mean']:.4f};",
        "[labelling.md](labelling.md) is what labelling makes of them.\n",
    ]
    write_text(path, "\n".join(lines))


def main(
    folder: Annotated[Path, tyro.conf.Positional],
    loop: int = 100,
    turns: int = 7,
    quiet: float = 0.05,
    results: Path = Path("results"),
) -> None:
    """Measure and write.

    Args:
        folder: Photographs; a thousand or so.
        loop: Images for the plain loop.
        turns: How often each way is run.
        quiet: Share of the machine that other programs may take in a turn that counts.
        results: Where the page goes; the figures go to bench in it.
    """
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TEAM_CACHE"] = cache
        facts = measure(folder, loop, turns, quiet)
    facts |= {"hardware": hardware("cpu"), "torch": torch.__version__, "pillow": PIL.__version__}
    facts |= {"onnxruntime": onnxruntime().__version__, "commit": commit()}
    write_json(results / "bench" / "embed-speed.json", facts)
    write_page(facts, results / "embedding.md")
    print(facts["images_per_second"], facts["times_as_fast"])


if __name__ == "__main__":
    tyro.cli(main)
