"""Class probabilities of all images of a folder, from the few that are labelled."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from team.episode import Episode, check_features
from team.methods import DEFAULT_METHOD, create_method
from team.seeding import generator

_DIRECTIONS = 256  # of features that are kept; more of them change no answer to speak of and cost time at every click
_SAMPLE = 20_000  # images that decide the directions


class Predictor:
    """Answers for one folder; what does not depend on the labels is computed once. features: float32 ``[n, d]``."""

    def __init__(self, features: NDArray[np.float32]) -> None:
        points = torch.from_numpy(np.require(features, np.float32, requirements=["C", "W"]))
        check_features("features", points, dims=(2,))
        self._points = _principal(points)[None]
        self._prepared: dict[str, Tensor] = {}

    @property
    def points(self) -> Tensor:
        """The features as answers are made from them: centred, ``[n, at most 256]``."""
        return self._points[0]

    @torch.no_grad()
    def predict(self, labels: NDArray[np.int64], classes: int, *, method: str | None = None) -> NDArray[np.float32]:
        """Probabilities ``[n, classes]``; labels: ``[n]`` in 0..classes-1, -1 for unlabelled.

        An image with a label has probability one for it, and a class of which no image is labelled has probability zero
        for all others. Where nothing is labelled, every class is as likely as any other.
        """
        labels = np.asarray(labels)
        _check_labels(labels, self._points.shape[1], classes)
        known = labels >= 0
        if not known.any():
            return np.full((len(labels), classes), 1 / max(classes, 1), np.float32)
        probabilities = np.zeros((len(labels), classes), np.float32)
        probabilities[known, labels[known]] = 1
        if not known.all():
            present, numbers = np.unique(labels[known], return_inverse=True)
            answer = self._solve(known, numbers, method or DEFAULT_METHOD)
            probabilities[np.ix_(~known, present)] = answer.exp().numpy()
        return probabilities

    def _solve(self, known: NDArray[np.bool_], numbers: NDArray[np.int64], method: str) -> Tensor:
        """log-probabilities ``[Q, N]`` of points not ``known [n]``; numbers: ``[S]``, the classes of those known."""
        head = create_method(method)
        if method not in self._prepared:
            self._prepared[method] = head.prepared(self._points)
        points, mask = self._prepared[method], torch.from_numpy(known)
        labels = torch.from_numpy(numbers)[None]
        episode = Episode(points[:, mask], labels, points[:, ~mask], int(labels.max()) + 1)
        head.check(episode)
        return head.solved(episode)[0]


def predict(
    features: NDArray[np.float32], labels: NDArray[np.int64], classes: int, *, method: str | None = None
) -> NDArray[np.float32]:
    """One answer of a new :class:`Predictor`."""
    return Predictor(features).predict(labels, classes, method=method)


def check_method(name: str | None) -> None:
    """Raise unless there is a method of this name, or it is None for the default."""
    create_method(name or DEFAULT_METHOD)


def _principal(points: Tensor) -> Tensor:
    """``points [n, d]``, centred, in the coordinates of their principal directions, the first 256 of them.

    This is a rotation where they have no more than that, and answers do not depend on a rotation.
    """
    n, dimension = points.shape
    centre = points.mean(0)
    if dimension <= _DIRECTIONS:
        return points - centre
    chosen = torch.randperm(n, generator=generator(0, "principal directions"))[:_SAMPLE]
    sample = (points[chosen] - centre).double()
    if len(sample) < dimension:
        values, vectors = torch.linalg.eigh(sample @ sample.mT)
        vectors, values = vectors[:, -_DIRECTIONS:], values[-_DIRECTIONS:]
        directions = sample.mT @ vectors / values.clamp_min(1e-12 * float(values[-1]) + 1e-300).sqrt()
    else:
        _, vectors = torch.linalg.eigh(sample.mT @ sample)
        directions = vectors[:, -_DIRECTIONS:]
    reduced: Tensor = (points - centre) @ directions.float()
    return reduced


def _check_labels(labels: NDArray[np.int64], images: int, classes: int) -> None:
    if labels.shape != (images,) or labels.dtype.kind not in "iu":
        raise ValueError(f"labels must be integers [{images}], not {labels.dtype} {list(labels.shape)}")
    if not -1 <= labels.min() <= labels.max() < classes:
        raise ValueError(f"labels must be -1..{classes - 1}, but go from {labels.min()} to {labels.max()}")
