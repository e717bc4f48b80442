"""Claims about the methods beside TEAM: each against its paper's formula, written again slowly, one episode at a time.

The references use autograd and torch.optim; the methods write their gradients out and fit a batch of episodes at once.
"""

from __future__ import annotations

from typing import Any

import pytest
import reference
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from team.episode import Episode
from team.methods.alpha_tim import AlphaTIM
from team.methods.base import Method
from team.methods.baseline import Baseline, BaselinePP
from team.methods.matchingnet import MatchingNet
from team.methods.simpleshot import SimpleShot
from team.methods.tim import TIM
from team.methods.transductive_finetuning import TransductiveFinetuning
from team.seeding import generator

VARIANTS: list[tuple[type[Method], dict[str, Any]]] = [
    (TIM, {"iterations": 20, "learning_rate": 0.01}),
    (TIM, {"form": "alternating", "iterations": 15}),
    (AlphaTIM, {"iterations": 20, "learning_rate": 0.01}),
    (AlphaTIM, {"alpha": 7.0, "iterations": 20, "learning_rate": 0.01}),
    (TransductiveFinetuning, {}),
    (SimpleShot, {}),
    (MatchingNet, {}),
    (MatchingNet, {"temperature": 0.001}),
    (Baseline, {}),
    (BaselinePP, {}),
]
NAMES = [" ".join([kind.__name__, *(f"{k}={v}" for k, v in options.items())]) for kind, options in VARIANTS]
every_variant = pytest.mark.parametrize(("kind", "options"), VARIANTS, ids=NAMES)
inductive = pytest.mark.parametrize("kind", [SimpleShot, MatchingNet, Baseline, BaselinePP])


def episode(seed: int = 0, dtype: torch.dtype = torch.float64, **shape: Any) -> tuple[Tensor, Tensor, Tensor]:
    support, labels, query = map(torch.from_numpy, reference.random_episode(seed, **shape))
    return support.to(dtype), labels, query.to(dtype)


def means(features: Tensor, labels: Tensor) -> Tensor:
    return torch.stack([features[labels == label].mean(0) for label in range(int(labels.max()) + 1)])


def unit(features: Tensor) -> Tensor:
    return torch.stack([row / row.norm() for row in features])


def distance_probabilities(points: Tensor, weights: Tensor, tau: float) -> Tensor:
    return torch.stack([torch.stack([-tau / 2 * ((x - w) ** 2).sum() for w in weights]) for x in points]).softmax(-1)


def close(found: Tensor, expected: Tensor) -> None:
    """To a relative 1e-4; methods keep their temperature in float32."""
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


# --- the papers' formulas ---------------------------------------------------------------------------------------------


def information_by_autograd(
    support: Tensor, labels: Tensor, query: Tensor, *, weights: tuple[float, float, float], alpha: float, steps: int
) -> Tensor:
    support, query = unit(support), unit(query)
    centres = means(support, labels).requires_grad_()
    optimiser = torch.optim.Adam([centres], lr=0.01)

    def entropy(p: Tensor) -> Tensor:
        return -(p * p.log()).sum(-1) if alpha == 1 else (1 - (p**alpha).sum(-1)) / (alpha - 1)

    for _ in range(steps):
        p_support = distance_probabilities(support, centres, 15)
        p_query = distance_probabilities(query, centres, 15)
        fit = -torch.stack([p_support[i, label].log() for i, label in enumerate(labels.tolist())]).mean()
        loss = weights[0] * fit - weights[1] * entropy(p_query.mean(0)) + weights[2] * entropy(p_query).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return distance_probabilities(query, centres, 15).log().detach()


@pytest.mark.parametrize("marginal", [1.0, 0.3])
def test_tim_is_adam_on_the_papers_loss(marginal: float) -> None:
    inputs = episode()
    found = TIM(iterations=12, learning_rate=0.01, marginal_weight=marginal)(*inputs)
    close(found, information_by_autograd(*inputs, weights=(0.1, marginal, 0.1), alpha=1, steps=12))


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 7.0])
def test_alpha_tim_is_adam_on_the_papers_loss(alpha: float) -> None:
    inputs = episode(1)
    found = AlphaTIM(alpha=alpha, iterations=12, learning_rate=0.01)(*inputs)
    close(found, information_by_autograd(*inputs, weights=(1, 1, 1), alpha=alpha, steps=12))


def test_alpha_tim_at_one_is_tim() -> None:
    options: dict[str, Any] = {"iterations": 30, "learning_rate": 0.01}
    equal = TIM(support_weight=1.0, conditional_weight=1.0, **options)
    torch.testing.assert_close(AlphaTIM(alpha=1.0, **options)(*episode()), equal(*episode()))
    torch.testing.assert_close(AlphaTIM(alpha=1.0001, **options)(*episode()), equal(*episode()), rtol=1e-2, atol=1e-3)


def test_alternating_tim_is_the_papers_closed_form_updates() -> None:
    support, labels, query = episode()
    points, queries, shots = unit(support), unit(query), len(support)
    weights, lam, alpha, ways = means(points, labels), 0.1, 0.1, 3
    for _ in range(6):
        p, r = distance_probabilities(queries, weights, 15), distance_probabilities(points, weights, 15)
        q = p ** (1 + alpha) / (p ** (1 + alpha)).sum(0).sqrt()
        q = q / q.sum(1, keepdim=True)
        moved = []
        for k in range(ways):
            above, below = torch.zeros(points.shape[1], dtype=points.dtype), torch.zeros(())
            for i in range(shots):
                own = float(labels[i] == k)
                above = above + lam / (1 + alpha) * (own * points[i] + r[i, k] * (weights[k] - points[i]))
                below = below + lam / (1 + alpha) * own
            for i in range(len(queries)):
                share = shots / len(queries)
                above = above + share * (q[i, k] * queries[i] + p[i, k] * (weights[k] - queries[i]))
                below = below + share * q[i, k]
            moved.append(above / below)
        weights = torch.stack(moved)
    found = TIM(form="alternating", iterations=6)(support, labels, query)
    close(found, distance_probabilities(queries, weights, 15).log())


def test_both_forms_of_tim_raise_the_information_of_the_queries() -> None:
    inputs = episode(3, shots=(1, 1, 1), queries=30, dimension=12)

    def information(log_p: Tensor) -> float:
        p = log_p.exp()
        return float((p * log_p).sum(-1).mean() - (p.mean(0) * p.mean(0).log()).sum())

    before = information(TIM(iterations=0)(*inputs))
    assert information(TIM(iterations=100, learning_rate=1e-3)(*inputs)) > before
    assert information(TIM(form="alternating")(*inputs)) > before


def test_transductive_finetuning_is_adam_on_cross_entropy_and_entropy() -> None:
    support, labels, query = episode()
    head = torch.nn.Linear(6, 3, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(unit(means(unit(support), labels)))
        head.bias.zero_()
    optimiser = torch.optim.Adam(head.parameters(), lr=1e-3)
    for _ in range(25):
        log_p = head(unit(query)).log_softmax(-1)
        loss = F.cross_entropy(head(unit(support)), labels) - (log_p.exp() * log_p).sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    found = TransductiveFinetuning(learning_rate=1e-3)(support, labels, query)
    close(found, head(unit(query)).log_softmax(-1).detach())


def test_simpleshot_is_the_nearest_mean_of_centred_features_of_length_one() -> None:
    support, labels, query = episode()
    base = torch.arange(6, dtype=torch.float64) / 3
    centres = means(unit(support - base), labels)
    distances = torch.stack([((row - centres) ** 2).sum(-1) for row in unit(query - base)])
    found = SimpleShot(base_mean=base)(support, labels, query)
    close(found, (-distances).log_softmax(-1))
    assert torch.equal(found.argmax(-1), distances.argmin(-1))
    zero = SimpleShot(base_mean=torch.zeros(6))(support, labels, query)
    torch.testing.assert_close(SimpleShot()(support, labels, query), zero)


def test_matchingnet_sums_labels_under_cosine_attention() -> None:
    support, labels, query = episode()
    expected = torch.zeros(7, 3, dtype=torch.float64)
    for i, x in enumerate(query):
        attention = torch.stack([x @ s / (x.norm() * s.norm()) for s in support]).softmax(0)
        for weight, label in zip(attention, labels.tolist(), strict=True):
            expected[i, label] += weight
    close(MatchingNet()(support, labels, query), expected.log())


def finetuned_by_autograd(support: Tensor, labels: Tensor, query: Tensor, *, cosine: bool) -> Tensor:
    if cosine:
        support, query = unit(support), unit(query)
        weight, bias = means(support, labels), None
    else:
        weight, bias = torch.zeros(3, 6, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)

    def scores(points: Tensor) -> Tensor:
        return 2 * points @ F.normalize(weight).T if cosine else points @ weight.T + bias

    parameters = [weight] if bias is None else [weight, bias]
    optimiser = torch.optim.SGD(
        [parameter.requires_grad_() for parameter in parameters],
        lr=0.01,
        momentum=0.9,
        dampening=0.9,
        weight_decay=0.001,
    )
    for _ in range(100):
        optimiser.zero_grad()
        F.cross_entropy(scores(support), labels).backward()
        optimiser.step()
    return scores(query).log_softmax(-1).detach()


@pytest.mark.parametrize(("kind", "cosine"), [(Baseline, False), (BaselinePP, True)])
def test_the_baselines_are_torchs_gradient_descent_on_a_head(kind: type[Method], cosine: bool) -> None:
    inputs = episode(2)
    close(kind()(*inputs), finetuned_by_autograd(*inputs, cosine=cosine))


class CosineHead(torch.nn.Module):
    """Directions and lengths that are learned apart, twice the cosine times the length."""

    def __init__(self, head: Tensor) -> None:
        super().__init__()
        self.directions, self.lengths = torch.nn.Parameter(head[:, :-1]), torch.nn.Parameter(head[:, -1])

    def forward(self, points: Tensor) -> Tensor:
        return 2 * unit(points) @ F.normalize(self.directions).T * self.lengths


@pytest.mark.parametrize("kind", [Baseline, BaselinePP])
def test_with_a_seed_the_baselines_begin_at_random_and_take_mini_batches_of_4(kind: type[Baseline]) -> None:
    support, labels, query = episode(2, shots=(3, 4, 3))
    random = generator(5, "head")
    if kind is Baseline:
        start = kind(seed=5)._random_head((1, 3, 7), random)[0].double()
        head: torch.nn.Module = torch.nn.Linear(6, 3, dtype=torch.float64)
        head.load_state_dict({"weight": start[:, :-1], "bias": start[:, -1]})
        assert float(start.abs().max()) <= 6**-0.5
    else:
        head = CosineHead(kind(seed=5)._random_head((1, 3, 6), random)[0].double())
    optimiser = torch.optim.SGD(head.parameters(), lr=0.01, momentum=0.9, dampening=0.9, weight_decay=0.001)
    for order in torch.rand(100, 1, 10, generator=random).argsort(-1)[:, 0]:
        for chosen in (order[:4], order[4:8], order[8:]):
            optimiser.zero_grad()
            F.cross_entropy(head(support[chosen]), labels[chosen]).backward()
            optimiser.step()
    found = kind(seed=5)(support, labels, query)
    close(found, head(query).log_softmax(-1).detach())
    assert not torch.allclose(found, kind(seed=6)(support, labels, query))


# --- what every method keeps ------------------------------------------------------------------------------------------


@every_variant
def test_a_batch_equals_its_episodes_one_by_one(kind: type[Method], options: dict[str, Any]) -> None:
    method = kind(**options)
    support, labels, query = episode(batch=4, dimension=20)
    labels[1] = labels[1].flip(0)  # other shots per class, in other places
    found = method(support, labels, query)
    assert found.shape == (4, 7, 3)
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(4, 7, dtype=torch.float64))
    one_by_one = torch.stack([method(*single) for single in zip(support, labels, query, strict=True)])
    torch.testing.assert_close(found, one_by_one, rtol=1e-8, atol=1e-10)


@every_variant
def test_the_order_of_queries_supports_and_classes_does_not_matter(kind: type[Method], options: dict[str, Any]) -> None:
    method = kind(**options)
    support, labels, query = episode(shots=(2, 1, 3), queries=9)
    answer = method(support, labels, query)
    random = torch.Generator().manual_seed(0)
    order = torch.randperm(9, generator=random)
    torch.testing.assert_close(method(support, labels, query[order]), answer[order])
    order = torch.randperm(6, generator=random)
    torch.testing.assert_close(method(support[order], labels[order], query), answer)
    renamed = torch.tensor([2, 0, 1])
    torch.testing.assert_close(method(support, renamed[labels], query)[:, renamed], answer)


@every_variant
def test_the_transductive_flag_tells_whether_queries_see_one_another(
    kind: type[Method], options: dict[str, Any]
) -> None:
    method = kind(**options)
    support, labels, query = episode()
    together, alone = method(support, labels, query)[:1], method(support, labels, query[:1])
    assert method.transductive is not torch.allclose(together, alone)


@inductive
def test_other_queries_change_nothing_for_an_inductive_method(kind: type[Method]) -> None:
    support, labels, query = episode()
    others = query.clone()
    others[1:] = 50 * others[1:] + 3
    torch.testing.assert_close(kind()(support, labels, query)[0], kind()(support, labels, others)[0])


def stress(case: str) -> tuple[Tensor, Tensor, Tensor]:
    if case == "one query":
        return episode(queries=1)
    if case == "1 shot beside 50":
        return episode(shots=(1, 50), dimension=16)
    if case == "50 ways":
        return episode(shots=(1,) * 50, queries=60, dimension=8)
    if case == "one class":
        return episode(shots=(2,))
    support, labels, query = episode(shots=(2, 2, 2), scale=1.0 if case == "duplicates" else 100.0)
    if case == "duplicates":
        support[1], support[2], query[:4] = support[0], support[0], support[0]
    if case == "constant":
        support[:], query[:] = 3.0, 3.0
    if case == "zero":
        support[:], query[:] = 0.0, 0.0
    if case == "opposite":  # the class mean of unit features is zero
        support[1] = -support[0]
    return support, labels, query


STRESS = [
    "one query",
    "1 shot beside 50",
    "50 ways",
    "one class",
    "duplicates",
    "constant",
    "zero",
    "opposite",
    "large",
]


@pytest.mark.parametrize("case", STRESS)
@every_variant
def test_hard_episodes_get_finite_normalised_answers(kind: type[Method], options: dict[str, Any], case: str) -> None:
    support, labels, query = stress(case)
    for dtype in (torch.float64, torch.float32, torch.float16):
        found = kind(**options)(support.to(dtype), labels, query.to(dtype))
        assert found.dtype == torch.promote_types(dtype, torch.float32)
        assert bool(torch.isfinite(found).all())
        torch.testing.assert_close(found.exp().sum(-1), torch.ones_like(found[:, 0]))
        # Even odds are a saddle of the queries' entropy: Adam leaves it along whatever rounding has put there.
        if case in ("constant", "zero") and kind is not TransductiveFinetuning:
            torch.testing.assert_close(found.exp(), torch.full_like(found, 1 / 3), rtol=1e-3, atol=1e-3)


@every_variant
def test_half_precision_features_are_computed_in_float32(kind: type[Method], options: dict[str, Any]) -> None:
    support, labels, query = episode(dtype=torch.float16, scale=300.0)
    method = kind(**options)
    torch.testing.assert_close(method(support, labels, query), method(support.float(), labels, query.float()))


@pytest.mark.parametrize(
    "method", [TIM(), TIM(form="alternating"), AlphaTIM(), TransductiveFinetuning()], ids=lambda m: type(m).__name__
)
def test_the_papers_defaults_classify_clear_episodes(method: Method) -> None:
    support, labels, query = episode(shots=(1,) * 5, queries=40, dimension=32, spread=0.4, dtype=torch.float32)
    accuracy = (method(support, labels, query).argmax(-1) == torch.arange(40) % 5).float().mean()
    assert float(accuracy) > 0.9


# --- training, devices and the door -----------------------------------------------------------------------------------


@every_variant
def test_fitting_needs_no_autograd_and_features_get_finite_gradients(
    kind: type[Method], options: dict[str, Any]
) -> None:
    method = kind(learn_temperature=True, **options)
    for equal in (False, True):
        support, labels, query = episode()
        query[0] = support[0]
        if equal:
            support, query = torch.ones_like(support), torch.ones_like(query)
        with torch.no_grad():
            expected = method(support, labels, query)
        support.requires_grad_()
        query.requires_grad_()
        answer = method(support, labels, query)
        torch.testing.assert_close(answer, expected)
        answer[:, 0].sum().backward()
        for tensor in (support, query, method.log_temperature):
            assert tensor.grad is not None
            assert bool(torch.isfinite(tensor.grad).all())


@every_variant
def test_log_probabilities_never_wait_for_the_device(kind: type[Method], options: dict[str, Any]) -> None:
    """Fake tensors hold no values, so any decision on one raises."""
    with FakeTensorMode():
        method = kind(learn_temperature=True, **options)
        support = torch.randn(2, 5, 4, requires_grad=True)
        labels = torch.zeros(2, 5, dtype=torch.int64)
        result = method.log_probabilities(Episode(support, labels, torch.randn(2, 9, 4), ways=5))
        result.sum().backward()
    assert result.shape == (2, 9, 5)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (TIM, {"form": "newton"}, "form must be 'gradient' or 'alternating', not 'newton'"),
        (TIM, {"iterations": -1}, "iterations must be a whole number"),
        (TIM, {"support_weight": 0.0}, "support_weight must be positive"),
        (AlphaTIM, {"alpha": 0.5}, "alpha must be finite and 1 or more"),
        (TransductiveFinetuning, {"learning_rate": 0.0}, "learning_rate must be positive"),
        (SimpleShot, {"base_mean": torch.zeros(2, 6)}, "base_mean must hold one mean feature"),
        (SimpleShot, {"base_mean": torch.full((6,), torch.nan)}, "base_mean holds NaN"),
        (SimpleShot, {"base_mean": torch.zeros(5)}, "base_mean has 5 features, the episode 6"),
        (BaselinePP, {"momentum": -1.0}, "momentum must be finite and not negative"),
    ],
)
def test_wrong_options_are_turned_away(kind: type[Method], options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        kind(**options)(*episode())
