"""Claims about the transductive methods: each is its paper's formula, and none is upset by odd episodes.

The references are slow loops in numpy over one episode, written from the papers' formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import reference
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from team.episode import Episode
from team.methods.base import Method
from team.methods.bd_cspn import BDCSPN
from team.methods.label_propagation import LabelPropagation
from team.methods.laplacianshot import LaplacianShot, rectified
from team.methods.pt_map import PTMAP, sinkhorn
from team.methods.soft_kmeans import MaskedSoftKMeans, SoftKMeans, SoftKMeansCluster
from team.methods.team_plus import TEAMPlus

Array = NDArray[np.float64]

VARIANTS: list[tuple[type[Method], dict[str, Any]]] = [
    (SoftKMeans, {}),
    (SoftKMeans, {"rounds": 3}),
    (SoftKMeansCluster, {}),
    (SoftKMeansCluster, {"radius": 2.0, "rounds": 2}),
    (MaskedSoftKMeans, {}),
    (BDCSPN, {}),
    (BDCSPN, {"confident": 2}),
    (LaplacianShot, {}),
    (LaplacianShot, {"rectify": False}),
    (LabelPropagation, {}),
    (LabelPropagation, {"k": 3, "loops": False}),
    (PTMAP, {"sinkhorn_rounds": 5}),
    (PTMAP, {"centre_together": True, "rounds": 3, "sinkhorn_rounds": 10}),
    (TEAMPlus, {}),
    (TEAMPlus, {"balance": "uniform", "neighbours": 2, "rounds": 3}),
    (TEAMPlus, {"balance": "free", "smoothing": 0.0, "gamma": 5.0}),
]
every_variant = pytest.mark.parametrize(
    ("kind", "options"), VARIANTS, ids=[f"{kind.__name__}{options or ''}" for kind, options in VARIANTS]
)


def episode(seed: int = 0, dtype: torch.dtype = torch.float64, **shape: Any) -> tuple[Tensor, Tensor, Tensor]:
    support, labels, query = map(torch.from_numpy, reference.random_episode(seed, **shape))
    return support.to(dtype), labels, query.to(dtype)


# --- slow references --------------------------------------------------------------------------------------------------


def squared(x: Array, y: Array) -> float:
    return float(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))


def unit(x: Array) -> Array:
    return x / np.sqrt(squared(x, 0 * x))


def soft(scores: list[float] | Array) -> Array:
    weights = np.array([np.exp(score - max(scores)) for score in scores])
    return weights / weights.sum()


def class_mean(samples: list[Array], weights: list[float]) -> Array:
    total = sum(w * x for w, x in zip(weights, samples, strict=True))
    return np.asarray(total / sum(weights))


def slow_soft_kmeans(
    support: Array,
    labels: Array,
    query: Array,
    *,
    rounds: int = 1,
    radius: float | None = None,
    mask: Callable[[Array], Array] | None = None,
    unlabelled: Array | None = None,
) -> Array:
    unlabelled = query if unlabelled is None else unlabelled
    centres = list(reference.prototypes(support, labels))
    for _ in range(rounds):
        parts = []
        for x in unlabelled:
            scores = [-squared(x, c) for c in centres]
            if radius is not None:
                normaliser = 0.5 * np.log(2 * np.pi)
                scores = [score - normaliser - np.log(1.0) for score in scores]
                scores.append(-squared(x, 0 * x) / radius**2 - normaliser - np.log(radius))
            parts.append(soft(scores)[: len(centres)])
        kept = np.array(parts)
        if mask is not None:
            kept = kept * mask(np.array([[squared(x, c) for c in centres] for x in unlabelled]))
        centres = [
            class_mean(
                [*support, *unlabelled], [float(label == c) for label in labels] + [float(z) for z in kept[:, c]]
            )
            for c in range(len(centres))
        ]
    return np.array([soft([-squared(x, c) for c in centres]) for x in query])


def slow_mask(method: MaskedSoftKMeans) -> Callable[[Array], Array]:
    first, second = (layer.weight.detach().double().numpy() for layer in (method.hidden, method.output))
    bias, last = (layer.bias.detach().double().numpy() for layer in (method.hidden, method.output))

    def mask(distances: Array) -> Array:
        result = np.empty_like(distances)
        for c in range(distances.shape[1]):
            d = distances[:, c] / distances[:, c].mean()
            deviation = d.std()
            skewness = ((d - d.mean()) ** 3).mean() / deviation**3
            kurtosis = ((d - d.mean()) ** 4).mean() / deviation**4 - 3
            statistics = np.array([d.min(), d.max(), deviation**2, skewness, kurtosis])
            threshold, slope = np.exp(second @ np.tanh(first @ statistics + bias) + last)
            result[:, c] = 1 / (1 + np.exp(slope * (d - threshold)))
        return result

    return mask


def slow_bd_cspn(support: Array, labels: Array, query: Array, *, epsilon: float = 10.0, confident: int = 8) -> Array:
    support, query = np.array([unit(x) for x in support]), np.array([unit(x) for x in query])
    query = query + (support.mean(0) - query.mean(0))
    centres = reference.prototypes(support, labels)
    cosines = np.array([[float(unit(x) @ unit(c)) for c in centres] for x in query])
    rectified = []
    for c, centre in enumerate(centres):
        mine = sorted((q for q in range(len(query)) if cosines[q].argmax() == c), key=lambda q: -cosines[q, c])
        members = [unit(x) for x in support[labels == c]] + [unit(query[q]) for q in mine[:confident]]
        rectified.append(class_mean(members, [float(np.exp(epsilon * x @ unit(centre))) for x in members]))
    return np.array([soft([float(unit(x) @ unit(c)) for c in rectified]) for x in query])


def slow_laplacianshot(
    support: Array, labels: Array, query: Array, *, k: int, lam: float, rounds: int, rectify: bool, mean: Array
) -> Array:
    support, query = np.array([unit(x - mean) for x in support]), np.array([unit(x - mean) for x in query])
    centres = reference.prototypes(support, labels)
    if rectify:
        query = query + (support.mean(0) - query.mean(0))
        samples = [*support, *query]
        shares = [soft([10 * float(unit(x) @ unit(c)) for c in centres]) for x in samples]
        own = [int(share.argmax()) for share in shares]
        centres = np.array([
            np.mean([share[c] * x for x, share, mine in zip(samples, shares, own, strict=True) if mine == c], axis=0)
            for c in range(len(centres))
        ])  # fmt: skip
    unary = [[-squared(x, c) for c in centres] for x in query]
    answer = [soft(a) for a in unary]
    near = [sorted((p for p in range(len(query)) if p != q), key=lambda p: squared(query[p], query[q]))[:k]
            for q in range(len(query))]  # fmt: skip
    for _ in range(rounds):
        answer = [soft(np.array(a) + lam * sum(answer[p] for p in near[q])) for q, a in enumerate(unary)]
    return np.array(answer)


def slow_label_propagation(
    support: Array, labels: Array, query: Array, *, k: int, length_scale: float, loops: bool, alpha: float = 0.99
) -> Array:
    samples = [*support, *query]
    n = len(samples)
    edges = set()
    for i in range(n):
        order = sorted((j for j in range(n) if j != i), key=lambda j: squared(samples[i], samples[j]))
        edges |= {(i, j) for j in order[:k]} | {(j, i) for j in order[:k]}
    variance = length_scale**2 * np.mean([squared(samples[i], samples[j]) for i, j in edges])
    weights = np.eye(n) if loops else np.zeros((n, n))
    for i, j in edges:
        weights[i, j] = np.exp(-squared(samples[i], samples[j]) / (2 * variance))
    degrees = weights.sum(1)
    graph = np.array([[weights[i, j] / np.sqrt(degrees[i] * degrees[j]) for j in range(n)] for i in range(n)])
    spread = start = np.vstack([np.eye(labels.max() + 1)[labels], np.zeros((len(query), labels.max() + 1))])
    for _ in range(5000):  # Zhou et al.'s iteration, whose limit the closed form is
        spread = alpha * graph @ spread + start
    return np.array([soft(row) for row in spread[len(support) :]])


def slow_pt_map(support: Array, labels: Array, query: Array, *, rounds: int = 20, together: bool = False) -> Array:
    support, query = (
        np.array([unit(np.sqrt(np.maximum(x, 0) + 1e-6)) for x in features]) for features in (support, query)
    )
    both = np.vstack([support, query]).mean(0)
    support, query = (
        np.array([unit(x - (both if together else features.mean(0))) for x in features])
        for features in (support, query)
    )
    ways = int(labels.max()) + 1
    centres = reference.prototypes(support, labels)
    for step in range(rounds + 1):
        plan = np.array([[np.exp(-10 * squared(x, c)) for c in centres] for x in query])
        for _ in range(3000):
            plan = plan * (len(query) / ways / plan.sum(0, keepdims=True))
            plan = plan / plan.sum(1, keepdims=True)
        if step == rounds:
            return plan
        for c in range(ways):
            estimate = class_mean([*support, *query], [*(labels == c).astype(float), *plan[:, c]])
            centres[c] = centres[c] + 0.2 * (estimate - centres[c])
    raise AssertionError


def assert_matches(method: Method, expected: Callable[..., Array], **options: Any) -> None:
    for seed in range(3):
        support, labels, query = episode(seed, shots=(1, 2, 3), queries=11)
        found = method(support, labels, query).exp().detach().numpy()
        wanted = expected(support.numpy(), labels.numpy(), query.numpy(), **options)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-12)


# --- the papers' formulas ---------------------------------------------------------------------------------------------


def test_soft_kmeans_by_hand() -> None:
    """Two prototypes at 0 and 2 on a line and one query at 1, half of which is each class's."""
    support, labels, query = torch.tensor([[0.0], [2.0]]), torch.tensor([0, 1]), torch.tensor([[1.0], [0.0]])
    z = 1 / (1 + np.exp(-4.0))  # the share of class 0 in the query at zero
    first, second = 0.5 / (1.5 + z), (2 + 0.5) / (1 + 0.5 + 1 - z)
    expected = soft([-(first**2), -(second**2)])
    np.testing.assert_allclose(SoftKMeans()(support, labels, query)[1].exp(), expected, rtol=1e-5)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_soft_kmeans_refines_prototypes_by_soft_assignments(rounds: int) -> None:
    assert_matches(SoftKMeans(rounds=rounds), slow_soft_kmeans, rounds=rounds)


@pytest.mark.parametrize("radius", [0.5, 2.0, 100.0])
def test_the_distractor_cluster_at_the_origin_takes_its_share(radius: float) -> None:
    assert_matches(SoftKMeansCluster(radius=radius), slow_soft_kmeans, radius=radius)


def test_masked_soft_kmeans_lets_through_what_its_network_says() -> None:
    method = MaskedSoftKMeans()
    assert_matches(method, slow_soft_kmeans, mask=slow_mask(method))
    torch.nn.init.normal_(method.hidden.weight, generator=torch.Generator().manual_seed(1))
    torch.nn.init.normal_(method.output.weight, std=0.3, generator=torch.Generator().manual_seed(2))
    assert_matches(method, slow_soft_kmeans, mask=slow_mask(method))


@pytest.mark.parametrize("queries", [1, 11])
def test_an_unlabelled_set_refines_prototypes_in_place_of_the_queries(queries: int) -> None:
    for method, options in (
        (SoftKMeans(rounds=2), {"rounds": 2}),
        (SoftKMeansCluster(radius=2.0), {"radius": 2.0}),
        (masked := MaskedSoftKMeans(), {"mask": slow_mask(masked)}),
    ):
        support, labels, samples = episode(3, shots=(1, 2, 3), queries=queries + 9)
        query, unlabelled = samples[:queries], samples[queries:]
        found = method(support, labels, query, unlabelled).exp().detach().numpy()
        wanted = slow_soft_kmeans(
            support.numpy(), labels.numpy(), query.numpy(), unlabelled=unlabelled.numpy(), **options
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-12)


def test_the_mask_network_depends_on_the_seed_and_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    first, again, other = MaskedSoftKMeans(), MaskedSoftKMeans(), MaskedSoftKMeans(seed=1)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first.hidden.weight, again.hidden.weight)
    assert not torch.equal(first.hidden.weight, other.hidden.weight)


@pytest.mark.parametrize("confident", [1, 2, 8])
def test_bd_cspn_rectifies_prototypes_with_its_most_similar_queries(confident: int) -> None:
    assert_matches(BDCSPN(confident=confident), slow_bd_cspn, confident=confident)


@pytest.mark.parametrize("rectify", [True, False])
@pytest.mark.parametrize(("k", "lam", "rounds"), [(3, 1.0, 20), (10, 0.3, 5), (0, 1.0, 2)])
def test_laplacianshot_is_its_bound_update(k: int, lam: float, rounds: int, rectify: bool) -> None:
    mean = np.arange(6) / 20
    method = LaplacianShot(k=k, lam=lam, rounds=rounds, rectify=rectify, base_mean=torch.from_numpy(mean))
    options: dict[str, Any] = {"k": k, "lam": lam, "rounds": rounds, "rectify": rectify}
    assert_matches(method, slow_laplacianshot, **options, mean=mean)


def test_a_prototype_that_is_nobodys_nearest_is_not_rectified() -> None:
    samples = torch.tensor([[1.0, 0.1], [1.0, -0.1]])
    prototypes = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    torch.testing.assert_close(rectified(samples[None], prototypes[None])[0, 1], prototypes[1])


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize(("k", "length_scale"), [(20, 0.25), (3, 0.25), (1, 1.0), (5, 2.0)])
def test_label_propagation_is_the_limit_of_spreading(k: int, length_scale: float, loops: bool) -> None:
    method = LabelPropagation(k=k, length_scale=length_scale, loops=loops)
    assert_matches(method, slow_label_propagation, k=k, length_scale=length_scale, loops=loops)


@pytest.mark.parametrize("together", [False, True])
def test_pt_map_moves_prototypes_by_optimal_transport(together: bool) -> None:
    assert_matches(PTMAP(centre_together=together, sinkhorn_rounds=400), slow_pt_map, together=together)


def test_pt_map_by_default_is_near_the_converged_transport() -> None:
    inputs = episode(batch=4, shots=(1,) * 5, queries=75, dimension=16)
    torch.testing.assert_close(PTMAP()(*inputs).exp(), PTMAP(sinkhorn_rounds=400)(*inputs).exp(), rtol=0, atol=0.01)


def test_sinkhorn_keeps_rows_and_balances_columns_where_exponentials_would_overflow() -> None:
    scores = 50 * torch.randn(3, 12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    plan = sinkhorn(scores, torch.zeros(3, 1, 4, dtype=torch.float64), 3000)[0].exp()
    torch.testing.assert_close(plan.sum(-1), torch.ones(3, 12, dtype=torch.float64))
    torch.testing.assert_close(plan.sum(-2), torch.full((3, 4), 3.0, dtype=torch.float64), rtol=1e-3, atol=0)


@pytest.mark.parametrize("rounds", [1, 7, 10, 25])
def test_sinkhorn_by_factors_is_sinkhorn_by_logarithms(rounds: int) -> None:
    scores = 3 * torch.randn(2, 15, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    potential = torch.zeros(2, 1, 5, dtype=torch.float64)
    for _ in range(rounds):
        potential = potential + np.log(3) - (scores + potential).log_softmax(-1).logsumexp(-2, keepdim=True)
    torch.testing.assert_close(sinkhorn(scores, torch.zeros_like(potential), rounds)[1], potential)


@pytest.mark.parametrize("size", [1e2, 1e4, 1e8])
def test_sinkhorn_is_finite_however_far_a_class_is_from_every_query(size: float) -> None:
    scores = -torch.rand(4, 30, 5, generator=torch.Generator().manual_seed(0))
    scores[..., 1:] *= size
    log_plan, potential = sinkhorn(scores, torch.zeros(4, 1, 5), 100)
    assert bool(torch.isfinite(log_plan).all())
    assert bool(torch.isfinite(potential).all())


# --- what every one of them keeps -------------------------------------------------------------------------------------


@every_variant
def test_a_batch_equals_its_episodes_one_by_one_and_probabilities_sum_to_one(
    kind: type[Method], options: dict[str, Any]
) -> None:
    method = kind(**options)
    assert method.transductive is True
    for dimension in (4, 40):
        support, labels, query = episode(batch=4, dimension=dimension)
        together = method(support, labels, query)
        one_by_one = torch.stack([method(*single) for single in zip(support, labels, query, strict=True)])
        torch.testing.assert_close(together, one_by_one, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(together.exp().sum(-1), torch.ones(4, 7, dtype=torch.float64))


@every_variant
def test_the_order_of_queries_supports_and_classes_does_not_matter(kind: type[Method], options: dict[str, Any]) -> None:
    method = kind(**options)
    support, labels, query = episode(shots=(2, 1, 3), queries=9)
    query[5] = query[2]
    answer = method(support, labels, query)
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(9, generator=generator)
    torch.testing.assert_close(method(support, labels, query[order]), answer[order])
    order = torch.randperm(6, generator=generator)
    torch.testing.assert_close(method(support[order], labels[order], query), answer)
    renamed = torch.tensor([2, 0, 1])  # class c is now called renamed[c]
    torch.testing.assert_close(method(support, renamed[labels], query)[:, renamed], answer)


@every_variant
def test_queries_see_one_another(kind: type[Method], options: dict[str, Any]) -> None:
    support, labels, query = episode()
    method = kind(**options)
    assert not torch.allclose(method(support, labels, query)[:1], method(support, labels, query[:1]))


def odd_episodes() -> dict[str, tuple[Tensor, Tensor, Tensor]]:
    plain = episode(shots=(2, 2, 2), queries=9)
    ones = [torch.ones_like(plain[0]), plain[1], torch.ones_like(plain[2])]
    support, labels, query = episode(shots=(3, 3, 3), queries=30)
    return {
        "1 query": episode(queries=1),
        "1 query, 1 support": episode(shots=(1,), queries=1),
        "1 shot beside 50": episode(shots=(1, 50), queries=20),
        "50 ways": episode(shots=(1,) * 50, queries=60),
        "fewer queries than ways": episode(shots=(1,) * 10, queries=3),
        "ways=1": episode(shots=(4,), queries=6),
        "every query the same image": (support, labels, query[:1].expand(30, -1).clone()),
        "queries are the support": (support, labels, support.clone()),
        "every image the same": (ones[0], ones[1], ones[2]),
        "every image the same, large": (ones[0] * 300.1, ones[1], ones[2] * 300.1),
        "zeros": (ones[0] * 0, ones[1], ones[2] * 0),
        "a class absent from the queries": (support, labels, query[torch.arange(30) % 3 != 1]),
        "far apart": episode(scale=1000.0, spread=0.01, queries=12),
        "tiny": episode(scale=1e-6, queries=12),
        "an outlier": (support, labels, torch.cat([query, 1e4 * query[:1]])),
        "all negative": (-plain[0].abs(), plain[1], -plain[2].abs()),
    }


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@every_variant
def test_odd_episodes_give_finite_answers_and_gradients(
    kind: type[Method], options: dict[str, Any], dtype: torch.dtype
) -> None:
    method = kind(learn_temperature=True, **options)
    for name, (support, labels, query) in odd_episodes().items():
        if dtype == torch.float16 and name == "an outlier":
            query = query.clamp(-6e4, 6e4)
        support, query = support.to(dtype).requires_grad_(), query.to(dtype).requires_grad_()
        answer = method(support, labels, query)
        assert answer.dtype == torch.promote_types(dtype, torch.float32), name
        assert bool(torch.isfinite(answer).all()), name
        torch.testing.assert_close(answer.exp().sum(-1), torch.ones_like(answer[:, 0]), rtol=1e-4, atol=1e-4)
        method.zero_grad()
        answer[:, 0].sum().backward()
        # float16 cannot hold every gradient: it is enough that none is NaN
        finite = torch.isfinite if dtype != torch.float16 else lambda gradient: ~torch.isnan(gradient)
        for leaf in (support, query, *method.parameters()):
            assert leaf.grad is None or bool(finite(leaf.grad).all()), name


@every_variant
def test_images_that_are_all_the_same_say_nothing(kind: type[Method], options: dict[str, Any]) -> None:
    for value in (0.0, 1.0, 300.1):
        support, query = torch.full((6, 5), value), torch.full((9, 5), value)
        answer = kind(**options)(support, torch.tensor([0, 0, 1, 1, 2, 2]), query)
        torch.testing.assert_close(answer.exp(), torch.full((9, 3), 1 / 3), rtol=1e-3, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [1.0, 300.0])
@every_variant
def test_half_precision_features_give_the_answer_of_the_same_features_in_float32(
    kind: type[Method], options: dict[str, Any], scale: float, dtype: torch.dtype
) -> None:
    support, labels, query = episode(dtype=dtype, dimension=40, scale=scale)
    result = kind(**options)(support, labels, query)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, kind(**options)(support.float(), labels, query.float()))


@every_variant
def test_gradients_are_those_of_finite_differences(kind: type[Method], options: dict[str, Any]) -> None:
    method = kind(**options | ({"rounds": 2} if kind is PTMAP else {})).double()
    support, labels, query = episode(1)
    support, query = support.abs() + 0.1, query.abs() + 0.1  # PT-MAP's transform has a kink at zero
    if kind is MaskedSoftKMeans:
        with torch.no_grad():  # gradients pass through the distances, by design not through their statistics
            method.hidden.weight.zero_()  # type: ignore[union-attr, operator]
    direction = torch.randn(query.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    query.requires_grad_()
    weights = torch.linspace(-1, 1, 21, dtype=torch.float64).reshape(7, 3)
    (method(support, labels, query) * weights).sum().backward()
    step = 1e-6 * direction
    with torch.no_grad():
        plus, minus = ((method(support, labels, query + s) * weights).sum() for s in (step, -step))
    assert query.grad is not None
    torch.testing.assert_close((query.grad * direction).sum(), (plus - minus) / 2e-6, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", dict(VARIANTS))
def test_a_learned_temperature_receives_a_gradient(kind: type[Method]) -> None:
    method = kind(temperature=2.0, learn_temperature=True)
    method(*episode())[:, 0].sum().backward()
    assert method.log_temperature.grad is not None
    assert float(method.log_temperature.grad.abs()) > 0


def test_the_length_scale_and_the_mask_are_learned() -> None:
    for method in (SoftKMeansCluster(radius=2.0), MaskedSoftKMeans()):
        method(*episode(dtype=torch.float32))[:, 0].sum().backward()
        learned = [parameter for parameter in method.parameters() if parameter.requires_grad]
        assert learned
        assert all(parameter.grad is not None and bool((parameter.grad != 0).any()) for parameter in learned)
    assert not any(p.requires_grad for p in SoftKMeansCluster(learn_radius=False).parameters())


@every_variant
def test_log_probabilities_never_wait_for_the_device(kind: type[Method], options: dict[str, Any]) -> None:
    """Fake tensors hold no values, so any decision on one raises."""
    with FakeTensorMode():
        method = kind(learn_temperature=True, **options)
        support = torch.randn(2, 5, 8, requires_grad=True)
        labels = torch.zeros(2, 5, dtype=torch.int64)
        result = method.log_probabilities(Episode(support, labels, torch.randn(2, 9, 8), ways=5))
        result.sum().backward()
    assert result.shape == (2, 9, 5)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (SoftKMeans, {"rounds": -1}, "rounds must be"),
        (SoftKMeansCluster, {"radius": 0.0}, "radius must be positive and finite, not 0.0"),
        (BDCSPN, {"epsilon": -1.0}, "epsilon must be"),
        (BDCSPN, {"confident": 0}, "confident must be .* 1 or more, or None, not 0"),
        (LaplacianShot, {"k": -1}, "k must be"),
        (LaplacianShot, {"lam": float("nan")}, "lam must be"),
        (LaplacianShot, {"rounds": -1}, "rounds must be"),
        (LabelPropagation, {"k": 0}, "k must be .* 1 or more, not 0"),
        (LabelPropagation, {"alpha": 1.0}, "alpha must lie between 0 and 1"),
        (LabelPropagation, {"length_scale": 0.0}, "length_scale must be positive"),
        (TEAMPlus, {"balance": "equal"}, "balance must be 'estimated', 'uniform' or 'free', not 'equal'"),
        (TEAMPlus, {"rounds": 1.5}, "rounds must be a whole number, 0 or more, not 1.5"),
        (TEAMPlus, {"neighbours": -1}, "neighbours must be a whole number"),
        (TEAMPlus, {"gamma": -1.0}, "gamma must be finite and not negative"),
        (TEAMPlus, {"doubt": 0.0}, "doubt must be positive"),
        (PTMAP, {"beta": 0.0}, "beta must be positive"),
        (PTMAP, {"alpha": 1.5}, "alpha must lie"),
        (PTMAP, {"sinkhorn_rounds": -1}, "sinkhorn_rounds must be 0 or more"),
    ],
)
def test_wrong_options_are_turned_away(kind: type[Method], options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        kind(**options)
