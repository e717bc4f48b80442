"""The scikit-learn face: a classifier that learns from a few labels and all the points that have none."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from team.inductive import InductiveClassifier
from team.methods import DEFAULT_METHOD, create_method


class TEAMClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Few-shot, transductive classification of feature vectors by any method of :func:`team.list_methods`.

    method: its name; options: its options, as for :func:`team.create_method`

    ``fit(X, y)`` labels the points of X that have no label: those with y = -1, or None beside labels of any type. Few
    labels and many unlabelled points are what the methods are made for, and the number of labels may differ between
    classes. Features are used as they are given. Where y holds -1 and 1 and nothing else, these are two classes.

    After ``fit``: ``classes_``; ``transduction_ [n]``, the label of every point of X, as given or as found;
    ``label_distributions_ [n, C]``, the probabilities behind it.

    ``predict`` and ``predict_proba`` are for points that were not there: each is compared with the fitted prototypes
    under the fitted metric, by itself (:class:`team.inductive.InductiveClassifier`), so that the answer for one point
    does not depend on the others. Where all points are there from the start, ``transduction_`` is the better answer.
    """

    def __init__(self, method: str = DEFAULT_METHOD, options: Mapping[str, Any] | None = None) -> None:
        self.method = method
        self.options = options

    def fit(self, X: ArrayLike, y: ArrayLike) -> TEAMClassifier:
        """X: features ``[n, d]``; y: labels ``[n]``, -1 or None for unlabelled."""
        method = create_method(self.method, **(self.options or {}))
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        points: NDArray[Any] = validate_data(self, X, dtype=(np.float64, np.float32), ensure_min_samples=2)
        given: NDArray[Any] = column_or_1d(y, warn=True)
        check_consistent_length(points, given)
        labelled = _is_labelled(given)
        self.classes_, numbers = np.unique(_known_labels(given[labelled]), return_inverse=True)
        self.label_distributions_ = np.zeros((len(points), len(self.classes_)), points.dtype)
        self.label_distributions_[labelled, numbers] = 1
        features, known = torch.from_numpy(np.require(points, requirements=["C", "W"])), torch.from_numpy(labelled)
        if not labelled.all():
            with torch.no_grad():
                found = method(features[known], torch.from_numpy(numbers), features[~known])
            self.label_distributions_[~labelled] = found.exp().numpy()
        self.transduction_ = self.classes_[self.label_distributions_.argmax(1)]
        self.inductive_ = InductiveClassifier.fit(features, torch.from_numpy(self.label_distributions_), known)
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.floating]:
        """Class probabilities ``[n, C]`` of new points, in the order of ``classes_``."""
        check_is_fitted(self)
        points: NDArray[Any] = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        return self.inductive_.probabilities(points)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each new point, ``[n]``."""
        best = self.predict_proba(X).argmax(1)
        labels: NDArray[Any] = self.classes_[best]
        return labels


def _is_labelled(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Where ``y`` holds a label: not -1, None or NaN."""
    if y.dtype == object:
        return np.array([not (value is None or value != value or _is_minus_one(value)) for value in y], bool)
    labelled = np.ones(len(y), bool)
    if y.dtype.kind not in "if":
        return labelled
    if set(np.unique(y).tolist()) == {-1, 1}:
        warnings.warn(
            "y holds -1 and 1 only: they are taken for two classes, and no point for unlabelled", stacklevel=3
        )
        return labelled
    labelled &= (y != -1) & ~np.isnan(y)
    return labelled


def _is_minus_one(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and value == -1


def _known_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """The labels there are, if they can be class labels; strings that stood beside None as an array of strings."""
    if not len(labels):
        raise ValueError("y has no label; give at least one point of each class its class, the others -1 or None")
    if labels.dtype == object and all(isinstance(label, str) for label in labels):
        labels = labels.astype(str)
    check_classification_targets(labels)
    return labels
