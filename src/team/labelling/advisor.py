"""All that is computed from features and labels for the page: predictions, what to label next, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from team.labelling.explain import Explainer, Explanation
from team.labelling.predict import Predictor
from team.labelling.suggest import Suggester


@dataclass(frozen=True, eq=False)
class Predictions:
    """For the session at ``revision``: class numbers (0: none) and confidences ``[n]``, what to label next, and why
    there are none if something failed.
    """

    revision: int
    classes: NDArray[np.int64]
    confidence: NDArray[np.float32]
    suggestions: list[int] = field(default_factory=list)
    problem: str = ""


def no_predictions(images: int, revision: int, problem: str = "") -> Predictions:
    return Predictions(revision, np.zeros(images, np.int64), np.zeros(images, np.float32), problem=problem)


class Advisor:
    """For one folder; features: ``[n, d]``. Labels are given as ``[n]`` places in ``numbers [classes]``, the numbers
    of the classes; -1 for unlabelled.
    """

    def __init__(self, features: NDArray[np.float32], *, method: str | None = None, seed: int = 0) -> None:
        self._method = method
        self._predictor = Predictor(features)
        self._suggester = Suggester(self._predictor.points, seed=seed)
        self._explainer = Explainer(self._predictor.points.numpy())

    def predictions(self, labels: NDArray[np.int64], numbers: NDArray[np.int64], revision: int) -> Predictions:
        """One class alone predicts nothing: everything would be of that class, and no one would believe it."""
        known = labels >= 0
        if len(np.unique(labels[known])) < 2:
            none = no_predictions(len(labels), revision)
            return Predictions(revision, none.classes, none.confidence, self._suggester.suggest(known, None))
        probabilities = self._predictor.predict(labels, len(numbers), method=self._method)
        suggestions = self._suggester.suggest(known, probabilities)
        return Predictions(revision, numbers[probabilities.argmax(1)], probabilities.max(1), suggestions)

    def explain(self, item: int, labels: NDArray[np.int64], numbers: NDArray[np.int64]) -> Explanation:
        """Classes are named by their numbers."""
        known = labels >= 0
        named = labels.copy()
        named[known] = numbers[labels[known]]
        return self._explainer.explain(item, named)
