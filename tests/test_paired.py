"""Claims about paired comparison: the textbook's tests, on the same episodes or not at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import special, stats

from team import create_method, evaluate
from team.evaluation import compare, compare_accuracies
from team.evaluation.paired import incomplete_beta, sign_p, student_t_p


def accuracies(seed: int, count: int, gain: float) -> tuple[torch.Tensor, torch.Tensor]:
    random = np.random.default_rng(seed)
    hard = random.normal(60, 10, count)
    first, second = (np.round((hard + random.normal(shift, 4, count)) / 100 * 75) / 75 for shift in (gain, 0))
    return torch.from_numpy(100 * first), torch.from_numpy(100 * second)


@pytest.mark.parametrize(("count", "gain"), [(2, 1.0), (3, 0.0), (20, 1.0), (1000, 0.0), (1000, 0.5), (1000, 8.0)])
def test_the_tests_are_scipys(count: int, gain: float) -> None:
    first, second = accuracies(0, count, gain)
    found, expected = compare_accuracies(first, second), stats.ttest_rel(first.numpy(), second.numpy())
    differences = (first - second).numpy()
    assert found.difference == pytest.approx(differences.mean(), abs=1e-7)
    assert found.ci95 == pytest.approx(1.96 * differences.std(ddof=1) / count**0.5, rel=1e-7)
    assert found.p_t == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-300)
    assert (found.wins, found.losses) == ((differences > 1e-6).sum(), (differences < -1e-6).sum())
    sign = stats.binomtest(found.wins, found.wins + found.losses).pvalue if found.wins + found.losses else 1.0
    assert found.p_sign == pytest.approx(sign, rel=1e-9)


@pytest.mark.parametrize("freedom", [1, 2, 9, 255, 999, 100_000])
@pytest.mark.parametrize("statistic", [0.0, 1e-9, 0.01, 0.7, -1.3, 1.96, 5.0, 30.0, 1e6])
def test_the_t_distribution_is_scipys_in_the_middle_and_in_the_tails(statistic: float, freedom: int) -> None:
    expected = 2 * stats.t.sf(abs(statistic), freedom)
    assert student_t_p(statistic, freedom) == pytest.approx(expected, rel=1e-8, abs=1e-300)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (3.0, 0.5), (40.0, 7.0), (500.0, 0.5)])
def test_the_incomplete_beta_function_is_scipys(a: float, b: float) -> None:
    for x in (0.0, 1e-8, 0.1, 0.5, 0.9, 0.999, 1.0):
        assert incomplete_beta(a, b, x, 1 - x) == pytest.approx(special.betainc(a, b, x), rel=1e-9, abs=1e-300)


def test_pairing_sees_what_two_intervals_hide() -> None:
    first, second = accuracies(1, 400, 1.0)
    alone = 1.96 * float(first.std()) / 20
    found = compare_accuracies(first, second)
    assert found.ci95 < 0.7 * alone
    assert found.difference - found.ci95 > 0
    assert abs(found.difference) < 2 * alone


def test_no_difference_is_no_evidence_and_a_constant_one_is_certain() -> None:
    first, _ = accuracies(2, 50, 0.0)
    same, shifted = compare_accuracies(first, first), compare_accuracies(first + 1, first)
    assert (same.difference, same.ci95, same.p_t, same.p_sign) == (0, 0, 1, 1)
    assert shifted.p_t < 1e-12
    assert (shifted.wins, shifted.losses) == (50, 0)
    assert sign_p(0, 0) == 1
    swapped = compare_accuracies(first, first + 1)
    assert (swapped.difference, swapped.wins) == (-shifted.difference, 0)


def test_evaluations_of_other_episodes_are_not_compared() -> None:
    random = torch.Generator().manual_seed(0)
    features = {label: torch.randn(30, 4, generator=random) + label for label in range(6)}
    results = [evaluate(create_method(name), features, ways=3, episodes=20) for name in ("team", "protonet")]
    assert compare(*results).episodes == 20
    assert str(compare(*results)).startswith(f"{results[0].mean - results[1].mean:+.2f} ± ")
    for changes in ({"seed": 1}, {"sampling": "uniform"}, {"present": 2}, {"shots": 5}):
        with pytest.raises(ValueError, match=f"the evaluations differ in {next(iter(changes))}"):
            compare(results[0], replace(results[1], **changes))
    with pytest.raises(ValueError, match="two lists of one length"):
        compare(results[0], replace(results[1], accuracies=results[1].accuracies[:9]))
