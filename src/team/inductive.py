"""From a solved set of points to a classifier for new ones: the fitted metric, the fitted prototypes, and no more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from team.closed_form import MetricSettings, safe_root, solve_moments
from team.episode import Episode, class_means
from team.methods.protonet import squared_euclidean
from team.seeding import generator

_CHUNK = 4096
_SAMPLE = 10_000  # points that decide slope and offsets
_ITERATIONS = 100
_RIDGE = 1e-4


@dataclass(frozen=True, eq=False)
class InductiveClassifier:
    """log p(c | x) = -slope · d_M†(x, p_c) + offset_c + constant.

    The metric M† (Eq. 10) is that of the fitted points, the prototypes p_c are their means under the class
    probabilities that the transductive method found. With slope 2 and offset_c = -log Σ_j exp(-d(x_j, p_c)), this is
    bi-directional similarity (Sec. 3.4) of a point that joins the fitted ones, and which changes nothing for them.
    Slope and offsets are fitted so that the fitted points get the probabilities that the method gave them.

    centre: ``[1, d]``; projection: L ``[d, d]`` with M† = LᵀL; prototypes: L·(p - centre) ``[C, d]``; offsets: ``[C]``
    """

    centre: NDArray[np.float64]
    projection: NDArray[np.float64]
    prototypes: NDArray[np.float64]
    slope: float
    offsets: NDArray[np.float64]

    @classmethod
    def fit(cls, features: Tensor, probabilities: Tensor, labelled: Tensor) -> InductiveClassifier:
        """features: ``[n, d]``; probabilities: ``[n, C]``, one class for certain where ``labelled``, bool ``[n]``."""
        support, query = features[labelled], features[~labelled]
        classes = probabilities[labelled].argmax(-1)
        episode = Episode(support[None], classes[None], query[None], probabilities.shape[1])
        solution = solve_moments(episode, MetricSettings(k=min(MetricSettings.k, len(query))))
        factor, _ = torch.linalg.cholesky_ex(solution.matrix[0])
        centre, projection = solution.centre[0], factor.mT
        means = class_means(features[None].to(probabilities), probabilities[None])[0].to(centre)
        prototypes = (means - centre) @ projection.mT
        chosen = torch.randperm(len(features), generator=generator(0, "inductive"))[:_SAMPLE]
        distances = _distances(features[chosen], centre, projection, prototypes)
        slope, offsets = _fit_scores(distances, probabilities[chosen].to(distances))
        return cls(centre.numpy(), projection.numpy(), prototypes.numpy(), slope, offsets.numpy())

    def probabilities(self, points: NDArray[np.floating]) -> NDArray[np.floating]:
        """``[n, d]`` -> ``[n, C]``"""
        parts = (torch.from_numpy(part) for part in (self.centre, self.projection, self.prototypes))
        distances = _distances(torch.from_numpy(np.require(points, requirements=["C", "W"])), *parts)
        scores = torch.from_numpy(self.offsets) - self.slope * distances
        result: NDArray[np.floating] = scores.softmax(-1).numpy().astype(points.dtype)
        return result


def _distances(points: Tensor, centre: Tensor, projection: Tensor, prototypes: Tensor) -> Tensor:
    """d_M†(x, p) in float64, ``[n, C]``, a chunk of points at a time."""
    parts = []
    for chunk in torch.split(points, _CHUNK):
        projected = (chunk.to(centre) - centre) @ projection.mT
        parts.append(safe_root(squared_euclidean(projected[None], prototypes[None])[0]))
    return torch.cat(parts)


def _fit_scores(distances: Tensor, probabilities: Tensor) -> tuple[float, Tensor]:
    """The slope and offsets that give ``probabilities [n, C]`` from ``distances [n, C]`` with the least cross-entropy.

    The problem is convex; a small ridge on the slope keeps it finite where the classes are told apart without fail.
    """
    differences = distances - distances.mean(-1, keepdim=True)
    scale = differences.square().mean().sqrt().clamp_min(1e-12)
    scaled = differences / scale
    parameters = torch.zeros(1 + distances.shape[1], dtype=distances.dtype, requires_grad=True)
    with torch.no_grad():
        parameters[0] = 1.0
    optimiser = torch.optim.LBFGS([parameters], max_iter=_ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        slope, offsets = parameters[0], parameters[1:]
        log_p = (offsets - slope * scaled).log_softmax(-1)
        value = -(probabilities * log_p).sum(-1).mean() + _RIDGE * parameters.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        optimiser.step(loss)  # type: ignore[no-untyped-call]
    found = parameters.detach()
    return float(found[0].clamp_min(0) / scale), found[1:]
