"""Comparing two methods on the same episodes, which says far more than whether their two intervals overlap.

Some episodes are hard for every method. Differences within an episode are free of that, so their interval is narrower
than those of the two means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from team.evaluation.evaluate import Evaluation

_SAME = ("ways", "shots", "queries", "seed", "sampling", "concentration", "present")


@dataclass(frozen=True)
class Comparison:
    """The first method less the second, over paired episodes.

    difference: of the mean accuracies, in points of per cent; ci95: half of its 95 % interval
    wins, losses: episodes in which the first method is better, and worse
    p_t: of the paired t-test that the mean difference is zero; p_sign: of the sign test that wins and losses are
        equally likely, which supposes nothing about how large the differences are. Both are two-sided.
    """

    difference: float
    ci95: float
    wins: int
    losses: int
    episodes: int
    p_t: float
    p_sign: float

    def __str__(self) -> str:
        return f"{self.difference:+.2f} ± {self.ci95:.2f} (p = {self.p_t:.2g})"


def compare(first: Evaluation, second: Evaluation) -> Comparison:
    """Compare two evaluations on the same features' episodes; refuses those that cannot have seen the same ones."""
    for name in _SAME:
        if getattr(first, name) != getattr(second, name):
            found = f"{getattr(first, name)!r} and {getattr(second, name)!r}"
            raise ValueError(f"the evaluations differ in {name} ({found}), so their episodes are not the same")
    return compare_accuracies(first.accuracies, second.accuracies)


def compare_accuracies(first: Tensor, second: Tensor) -> Comparison:
    """Compare accuracies in per cent ``[E]``, where entry e of both is of the same episode."""
    if first.shape != second.shape or first.ndim != 1 or len(first) < 2:
        shapes = f"{list(first.shape)} and {list(second.shape)}"
        raise ValueError(f"accuracies must be two lists of one length, 2 or more, not {shapes}")
    # Shares of a hundred: differences of equal episodes shall be zero, and not the rounding of a third.
    differences = (first.double() - second.double()).round(decimals=9)
    count, mean = len(differences), float(differences.mean())
    error = float(differences.std()) / math.sqrt(count)
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    statistic = mean / error if error > 0 else math.copysign(math.inf, mean) if mean else 0.0
    p_t = student_t_p(statistic, count - 1)
    return Comparison(mean, 1.96 * error, wins, losses, count, p_t, sign_p(wins, losses))


def sign_p(wins: int, losses: int) -> float:
    """Exact two-sided p of so uneven a split if both sides were equally likely; ties are left out."""
    count = wins + losses
    tail = sum(math.comb(count, number) for number in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / (1 << count))


def student_t_p(statistic: float, freedom: int) -> float:
    """P(|T| ≥ |t|) for Student's t: the regularised incomplete beta function I_x(f/2, 1/2) at x = f / (f + t²)."""
    if math.isinf(statistic):
        return 0.0
    square = statistic * statistic
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square))


def incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b), with rest = 1 - x given by the caller, who may know it more exactly.

    By the continued fraction of Abramowitz and Stegun 26.5.8, evaluated forward (Lentz); beyond (a + 1) / (a + b + 2),
    where it converges slowly, by I_x(a, b) = 1 - I_{1-x}(b, a).
    """
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, rest, x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    fraction, upper, lower = 1.0, 1.0, 0.0
    for step in range(1000):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1 / _not_zero(1 + term * lower)
        upper = _not_zero(1 + term / upper)
        fraction *= lower * upper
        if abs(lower * upper - 1) < 1e-14:
            break
    return math.exp(log_front) / a * (fraction - 1)


def _not_zero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300
