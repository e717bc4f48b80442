"""How many predictions are right, from a small random sample that a person has looked at without seeing them."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import torch

from team.labelling.session import Audit

SAMPLE = 40


@dataclass(frozen=True)
class Accuracy:
    """correct of checked; estimate and the exact 95 % interval [low, high] of the share among the whole population."""

    correct: int
    checked: int
    estimate: float
    low: float
    high: float


def draw_sample(candidates: list[str], count: int, generator: torch.Generator) -> list[str]:
    """``count`` of the candidates (all, where there are fewer), drawn without replacement, in random order."""
    order = torch.randperm(len(candidates), generator=generator)[:count]
    return [candidates[number] for number in order.tolist()]


def accuracy(audit: Audit) -> Accuracy | None:
    """From the answers so far; None before the first."""
    checked = len(audit.answers)
    if checked == 0:
        return None
    correct = sum(audit.predicted[path] == number for path, number in audit.answers.items())
    low, high = exact_interval(correct, checked, audit.population)
    return Accuracy(correct, checked, correct / checked, low, high)


def exact_interval(correct: int, checked: int, population: int, level: float = 0.95) -> tuple[float, float]:
    """The share of correct ones in a finite population: all shares that neither tail of the hypergeometric
    distribution rules out. Its coverage is at least ``level`` for every share, and it ends in a point once all were
    checked (a normal approximation has neither property at 40 of 40).
    """
    from scipy.stats import hypergeom  # type: ignore[import-untyped]

    tail = (1 - level) / 2
    fewest, most = correct, population - (checked - correct)
    # Both tails are monotone in the total, so each end is found by bisection: one evaluation costs a millisecond.
    low = bisect_left(
        range(fewest, most), True, key=lambda total: hypergeom.sf(correct - 1, population, total, checked) > tail
    )
    high = bisect_left(
        range(fewest + 1, most + 1), True, key=lambda total: hypergeom.cdf(correct, population, total, checked) <= tail
    )
    return (fewest + low) / population, (fewest + high) / population
