"""Which images to label next: those that stand for many, are unlike what is labelled, and about which we are unsure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from team.seeding import generator

COUNT = 24
_DIRECTIONS = 64  # suggestions need neighbourhoods, not distances to the last digit
_SAMPLE = 4096
_NEIGHBOURS = 10
_POOL = 2048
_PART = 8192  # points at a time, to bound memory
_LABELLED = 1024
_FLOOR = 0.25  # how much a confident image far from every label counts beside an unsure one: it may be a new class


class Suggester:
    """For one folder; points: ``[n, d]``. What does not depend on labels is computed once (seconds at 100 000)."""

    def __init__(self, points: Tensor, *, seed: int = 0) -> None:
        sample = torch.randperm(len(points), generator=generator(seed, "suggest"))[:_SAMPLE]
        self._points = _main_directions(points, points[sample])
        self._density = _density(self._points, self._points[sample])

    def suggest(
        self, labelled: NDArray[np.bool_], probabilities: NDArray[np.float32] | None, count: int = COUNT
    ) -> list[int]:
        """Up to ``count`` unlabelled images, the most useful first.

        labelled: ``[n]``; probabilities: ``[n, classes]``, or None before there are any. One formula serves from the
        first label to the last: density × novelty × (floor + uncertainty). Each pick counts as labelled for the next,
        so before the first label this starts in the densest place and goes on with the dense places far from it.
        """
        candidates = torch.from_numpy(np.flatnonzero(~labelled))
        if len(candidates) == 0:
            return []
        density = self._density[candidates]
        need = density if probabilities is None else density * (_FLOOR + _uncertainty(probabilities)[candidates])
        novelty = torch.ones(len(candidates))
        known = torch.from_numpy(np.flatnonzero(labelled))
        if len(known):
            known = known[torch.linspace(0, len(known) - 1, min(len(known), _LABELLED)).long()]
            novelty = _novelty(self._points[candidates], self._points[known])
        worth = need * novelty
        pool = worth.topk(min(_POOL, len(candidates)) if len(known) else len(candidates)).indices
        candidates, need, novelty = candidates[pool], need[pool], novelty[pool]
        points = self._points[candidates]
        picks = []
        for _ in range(min(count, len(candidates))):
            pick = int((need * novelty).argmax())
            picks.append(int(candidates[pick]))
            novelty = novelty.minimum(_novelty(points, points[pick : pick + 1]))
            need[pick] = -1  # never again, even where all novelty is zero
            novelty[pick] = 1
        return picks


def _main_directions(points: Tensor, sample: Tensor) -> Tensor:
    """Unit vectors ``[n, at most 64]``: the centred points along the main directions of the sample."""
    centre = sample.mean(0)
    centred = sample - centre
    directions = torch.linalg.eigh(centred.mT @ centred).eigenvectors[:, -_DIRECTIONS:]
    return torch.nn.functional.normalize((points - centre) @ directions, dim=1)


def _density(points: Tensor, sample: Tensor) -> Tensor:
    """Mean similarity to the nearest few of the sample, as a rank in (0, 1], ``[n]``."""
    neighbours = min(_NEIGHBOURS + 1, len(sample))
    means = [(part @ sample.mT).topk(neighbours).values.mean(1) for part in _parts(points)]
    ranks = torch.cat(means).argsort().argsort()
    return (ranks + 1) / len(points)


def _parts(points: Tensor) -> Iterator[Tensor]:
    return (points[start : start + _PART] for start in range(0, len(points), _PART))


def _novelty(points: Tensor, known: Tensor) -> Tensor:
    """(1 - cosine to the most similar known point) / 2, ``[n]``, in 0..1."""
    return torch.cat([(1 - (part @ known.mT).amax(1)) / 2 for part in _parts(points)]).clamp(0, 1)


def _uncertainty(probabilities: NDArray[np.float32]) -> Tensor:
    """One minus the margin between the two likeliest classes, ``[n]``."""
    if probabilities.shape[1] < 2:
        return torch.ones(len(probabilities))
    likeliest = torch.from_numpy(probabilities).topk(2).values
    return 1 - (likeliest[:, 0] - likeliest[:, 1])
