"""How right a folder is after a few labels, and how many labels it takes: ours beside three usual ways, same features.

    python benchmarks/label_folder.py --root DIR     # DIR holds CUB_200_2011 and cifar-100-python

lays out folders of real photographs of classes that nothing was tuned on, embeds them with the default embedder, and
writes results/bench/labelling.json, results/figures/labelling.png and results/labelling.md. ``--part val`` is for
choosing settings; the figures that are reported are those of the test classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from label_layout import lay_out
from label_report import plot_clicks, write_page
from numpy.typing import NDArray

from team import provenance
from team.files import write_json
from team.labelling.embed_folder import embed_folder
from team.labelling.embedders import NAMES, find_embedder
from team.labelling.predict import Predictor
from team.methods import DEFAULT_METHOD

CLASSES, IMAGES = 5, 60
POOL = {"cub": 60, "cifar100": 100}  # images per class from which a folder is drawn; no CUB class has many more than 60

Answer = Callable[[NDArray[np.int64]], NDArray[np.floating]]
"""From labels ``[n]``, -1 for none, to a score of each class ``[n, C]``; the less sure, the smaller the best's lead."""


@dataclass(frozen=True, eq=False)
class Folder:
    """features: float32 ``[n, d]``; truth: ``[n]`` in 0..C-1; first: one image of each class, ``[C]``"""

    features: NDArray[np.float32]
    truth: NDArray[np.int64]
    first: NDArray[np.int64]


def draw_folders(features: NDArray[np.float32], labels: NDArray[np.int64], count: int, seed: int) -> Iterator[Folder]:
    """Folders of 5 random classes with 60 random images each (fewer where a class has fewer)."""
    for number in range(count):
        random = np.random.default_rng((seed, number))
        chosen = random.choice(labels.max() + 1, CLASSES, replace=False)
        members = [random.permutation(np.flatnonzero(labels == label))[:IMAGES] for label in chosen]
        truth = np.repeat(np.arange(CLASSES), [len(rows) for rows in members])
        first = np.array([np.flatnonzero(truth == label)[0] for label in range(CLASSES)])
        yield Folder(features[np.concatenate(members)], truth, first)


def nearest_prototype(features: NDArray[np.float32]) -> Answer:
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)

    def answer(labels: NDArray[np.int64]) -> NDArray[np.floating]:
        means = np.stack([unit[labels == label].mean(0) for label in range(CLASSES)])
        return unit @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T

    return answer


def linear_svm(features: NDArray[np.float32]) -> Answer:
    from sklearn.svm import SVC

    unit = features / np.linalg.norm(features, axis=1, keepdims=True)

    def answer(labels: NDArray[np.int64]) -> NDArray[np.floating]:
        known = labels >= 0
        model = SVC(kernel="linear", C=10.0, decision_function_shape="ovr").fit(unit[known], labels[known])
        return np.asarray(model.decision_function(unit))

    return answer


def label_spreading(features: NDArray[np.float32]) -> Answer:
    from sklearn.semi_supervised import LabelSpreading

    unit = features / np.linalg.norm(features, axis=1, keepdims=True)

    def answer(labels: NDArray[np.int64]) -> NDArray[np.floating]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LabelSpreading(kernel="knn", n_neighbors=10, alpha=0.2).fit(unit, labels)
        return np.nan_to_num(model.label_distributions_)

    return answer


def ours(features: NDArray[np.float32]) -> Answer:
    predictor = Predictor(features)
    return lambda labels: predictor.predict(labels, CLASSES)


WAYS: dict[str, Callable[[NDArray[np.float32]], Answer]] = {
    "ours": ours,
    "nearest prototype": nearest_prototype,
    "linear SVM": linear_svm,
    "LabelSpreading": label_spreading,
}


def click(folder: Folder, way: str, *, target: float, per_step: int, most: int) -> tuple[list[float], int | None]:
    """Label the first of each class, then again and again the least sure: accuracy of the folder after each step.

    A person's labels are right by definition. Also gives the number of labels at which ``target`` was reached, if it
    was: the figure a person waits for.
    """
    answer = WAYS[way](folder.features)
    labels = np.full(len(folder.truth), -1)
    labels[folder.first] = folder.truth[folder.first]
    accuracies = []
    reached = None
    while True:
        scores = answer(labels)
        given = labels >= 0
        accuracy = 100 * float(np.mean(np.where(given, folder.truth, scores.argmax(1)) == folder.truth))
        accuracies.append(round(accuracy, 2))
        count = int(given.sum())
        if reached is None and accuracy >= target:
            reached = count
        if count + per_step > most:
            return accuracies, reached
        best = np.sort(scores, 1)
        lead = np.where(given, np.inf, best[:, -1] - best[:, -2])
        doubtful = np.argsort(lead, kind="stable")[:per_step]
        labels[doubtful] = folder.truth[doubtful]


def compare(features: NDArray[np.float32], labels: NDArray[np.int64], draws: int, seed: int) -> dict[str, Any]:
    """Of every way, on the same folders: accuracy of what one label per class leaves unlabelled, and clicks to 95 %."""
    folders = list(draw_folders(features, labels, draws, seed))
    one_label: dict[str, list[float]] = {way: [] for way in WAYS}
    clicks: dict[str, dict[str, Any]] = {}
    for way in WAYS:
        curves, reached = [], []
        for folder in folders:
            start = np.full(len(folder.truth), -1)
            start[folder.first] = folder.truth[folder.first]
            rest = start < 0
            right = WAYS[way](folder.features)(start).argmax(1) == folder.truth
            one_label[way].append(round(100 * float(right[rest].mean()), 3))
        for folder in folders[: draws // 2]:
            curve, count = click(folder, way, target=95.0, per_step=5, most=80)
            curves.append(curve)
            reached.append(count)
        steps = [CLASSES + 5 * step for step in range(len(curves[0]))]
        mean = np.mean(curves, 0).round(2).tolist()
        clicks[way] = {"labels": steps, "accuracy": mean, "labels_to_95": reached}
    gain = np.array(one_label["ours"]) - np.array(one_label["nearest prototype"])
    interval = 1.96 * gain.std(ddof=1) / np.sqrt(len(gain))
    return {
        "one_label_per_class": {way: round(float(np.mean(values)), 2) for way, values in one_label.items()},
        "gain_over_nearest_prototype": {"mean": round(float(gain.mean()), 2), "ci95": round(float(interval), 2)},
        "per_draw": one_label,
        "clicks": clicks,
    }


def main(
    root: Path,
    part: Literal["val", "test"] = "test",
    draws: int = 50,
    seed: int = 0,
    embedder: str = "efficientnet-lite0",
    folders: Path = Path("runs/labelling"),
    results: Path = Path("results"),
) -> None:
    """Lay out, embed, compare, write.

    Args:
        root: Folder with CUB_200_2011 and cifar-100-python.
        part: Classes of the data sets' usual splits.
        draws: Folders per data set.
        seed: Decides which.
        embedder: As for ``team label``; efficientnet-lite0-float32 is the default one in floats.
        folders: Where the photographs are laid out.
        results: Where labelling.json goes.
    """
    data = {}
    network = find_embedder(embedder)
    for dataset, pool in POOL.items():
        place = folders / f"{dataset}-{part}"
        truth = lay_out(dataset, root, part, place, per_class=pool)
        embedded = embed_folder(place, embedder=network)
        names = sorted(set(truth.values()))
        labels = np.array([names.index(truth[path]) for path in embedded.paths])
        data[dataset] = compare(embedded.features, labels, draws, seed)
        print(dataset, data[dataset]["one_label_per_class"], data[dataset]["gain_over_nearest_prototype"])
    facts = {
        "classes": CLASSES,
        "images_per_class": IMAGES,
        "draws": draws,
        "seed": seed,
        "part": part,
        "embedder": f"{network.name}, ImageNet weights" if embedder in NAMES else embedder,
        "method": DEFAULT_METHOD,
        "commit": provenance.commit(),
        "data": data,
    }
    name = "labelling" if part == "test" else f"labelling-{part}"
    write_json(results / "bench" / f"{name}.json", facts)
    plot_clicks(facts, results / "figures" / f"{name}.png")
    write_page(facts, results / f"{name}.md")


if __name__ == "__main__":
    tyro.cli(main)
