"""Class probabilities of all images of a folder, from the few that are labelled."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from team.methods import create_method

DEFAULT_METHOD = "team"


class Predictor:
    """Answers for one folder; what does not depend on the labels is computed once. features: float32 ``[n, d]``."""

    def __init__(self, features: NDArray[np.float32]) -> None:
        self.features = features

    def predict(self, labels: NDArray[np.int64], classes: int, *, method: str | None = None) -> NDArray[np.float32]:
        """Probabilities ``[n, classes]``; labels: ``[n]`` in 0..classes-1, -1 for unlabelled.

        An image with a label has probability one for it; a class without any labelled image has zero everywhere.
        """
        known = labels >= 0
        present, support_labels = np.unique(labels[known], return_inverse=True)
        probabilities = np.zeros((len(labels), classes), np.float32)
        probabilities[known, labels[known]] = 1
        if len(present) and not known.all():
            head = create_method(method or DEFAULT_METHOD)
            with torch.no_grad():
                answer = head(
                    torch.from_numpy(self.features[known]),
                    torch.from_numpy(support_labels),
                    torch.from_numpy(self.features[~known]),
                )
            probabilities[np.ix_(~known, present)] = answer.exp().numpy()
        return probabilities


def predict(
    features: NDArray[np.float32], labels: NDArray[np.int64], classes: int, *, method: str | None = None
) -> NDArray[np.float32]:
    """One answer of :class:`Predictor`."""
    return Predictor(features).predict(labels, classes, method=method)
