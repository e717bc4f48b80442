"""Why an image got its label: the labelled examples nearest to it, and where it stands in both directions.

TEAM asks twice (Sec. 3.4): which class is nearest to the image, and how near the image is to the class, compared with
all other images. An image that is merely the least bad fit for a class does well in the first and badly in the second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NEIGHBOURS = 6


@dataclass(frozen=True)
class Neighbour:
    """item: a labelled image; similarity: its cosine to the explained one, of centred features."""

    item: int
    similarity: float


@dataclass(frozen=True)
class Direction:
    """For one class. to_class: the place of the class among all classes, by nearness to the image, 1 the nearest;
    to_image: the place of the image among all unlabelled ones, by nearness to the class.
    """

    label: int
    similarity: float
    to_class: int
    to_image: int


@dataclass(frozen=True)
class Explanation:
    """neighbours: nearest first; directions: one per class with a label, nearest first; unlabelled: how many images."""

    neighbours: list[Neighbour]
    directions: list[Direction]
    unlabelled: int


class Explainer:
    """For one folder; points: ``[n, d]``."""

    def __init__(self, points: NDArray[np.float32]) -> None:
        centred = points - points.mean(0)
        self._points = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)

    def explain(self, item: int, labels: NDArray[np.int64]) -> Explanation:
        """labels: ``[n]``, -1 for unlabelled. An image with a label is explained as if it had none."""
        labels = labels.copy()
        labels[item] = -1
        known = np.flatnonzero(labels >= 0)
        unlabelled = np.flatnonzero(labels < 0)
        if len(known) == 0:
            return Explanation([], [], len(unlabelled))
        similarities = self._points[known] @ self._points[item]
        nearest = np.argsort(-similarities, kind="stable")[:NEIGHBOURS]
        neighbours = [Neighbour(int(known[place]), float(similarities[place])) for place in nearest]

        present = np.unique(labels[known])
        prototypes = np.stack([self._points[labels == label].mean(0) for label in present])
        prototypes /= np.maximum(np.linalg.norm(prototypes, axis=1, keepdims=True), 1e-12)
        own = prototypes @ self._points[item]  # [classes]
        others = self._points[unlabelled] @ prototypes.T  # [unlabelled, classes]
        directions = [
            Direction(int(label), float(value), _place(own, value), _place(others[:, place], value))
            for place, (label, value) in enumerate(zip(present, own, strict=True))
        ]
        return Explanation(neighbours, sorted(directions, key=lambda each: each.to_class), len(unlabelled))


def _place(values: NDArray[np.float32], value: np.float32) -> int:
    """How many of the values are clearly above this one, plus one; the image itself, rounded differently, is not."""
    return 1 + int((values > value + 1e-6).sum())
