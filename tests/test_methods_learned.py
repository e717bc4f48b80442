"""Claims about the methods with learned parts: each is its paper's formula, and none is upset by odd episodes.

The references are loops over one episode, written from the papers' formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
import torch
from test_methods_transductive import odd_episodes
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from team import create_backbone, create_method
from team.episode import Episode
from team.methods.base import Method
from team.methods.maml import disagreement
from team.methods.network import NetworkMethod

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("relationnet", {}),
    ("tpn", {"k": 4}),
    ("gnn", {"hidden": 8}),
    ("maml", {"test_steps": 3}),
    ("maml", {"first_order": True}),
    ("maml+", {"test_steps": 3, "learning_rate": 0.5}),
    ("reptile", {"test_steps": 3}),
]
every_variant = pytest.mark.parametrize(
    ("name", "options"), VARIANTS, ids=[f"{name}{options or ''}" for name, options in VARIANTS]
)
WIDTH = 6


def episode(seed: int = 0, dtype: torch.dtype = torch.float64, **shape: Any) -> tuple[Tensor, Tensor, Tensor]:
    support, labels, query = map(torch.from_numpy, reference.random_episode(seed, **shape))
    return support.to(dtype), labels, query.to(dtype)


def trained(name: str, *, ways: int = 3, dim: int = WIDTH, **options: Any) -> Method:
    """The method with random weights in all its parts, as training may leave them."""
    if name in ("gnn", "maml", "maml+", "reptile"):
        options["ways"] = ways
    method = create_method(name, dim=dim, **options)
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in method.parameters():
            if parameter.ndim > 0:
                parameter.add_(torch.randn(parameter.shape, generator=random) / (4 * parameter.shape[-1] ** 0.5))
    return method


def weights(method: Method) -> dict[str, np.ndarray]:
    return {name: value.double().numpy() for name, value in method.state_dict().items()}


# --- the papers' formulas ---------------------------------------------------------------------------------------------


def test_relationnet_compares_concatenated_features_by_two_layers_and_a_sigmoid() -> None:
    method = trained("relationnet", hidden=5)
    support, labels, query = episode()
    w = weights(method)
    relations = np.empty((7, 3))
    for i, x in enumerate(query.numpy()):
        for c, prototype in enumerate(reference.prototypes(support.numpy(), labels.numpy())):
            hidden = w["hidden.weight"] @ np.concatenate([prototype, x]) + w["hidden.bias"]
            logit = w["output.weight"][0] @ np.maximum(hidden, 0) + w["output.bias"][0]
            relations[i, c] = 1 / (1 + np.exp(-logit))
    found = method(support, labels, query).detach().exp().numpy()
    np.testing.assert_allclose(found, relations / relations.sum(1, keepdims=True), rtol=1e-9)
    answers = torch.tensor([0, 1, 2, 0, 1, 2, 0])
    target = np.eye(3)[answers.numpy()]
    loss, _ = method.loss(Episode(support[None], labels[None], query[None], 3), answers[None])
    assert float(loss.detach()) == pytest.approx(((relations - target) ** 2).mean(), rel=1e-9)


def test_tpn_untrained_is_label_propagation() -> None:
    inputs = episode(queries=20)
    plain = create_method("label-propagation", k=5)(*inputs)
    assert torch.equal(create_method("tpn", k=5)(*inputs), plain)
    torch.testing.assert_close(create_method("tpn", k=5, dim=WIDTH)(*inputs), plain)
    assert not torch.allclose(trained("tpn", k=5)(*inputs), plain, atol=1e-3)


@pytest.mark.parametrize("k", [3, 50])
def test_tpn_propagates_labels_on_a_graph_of_features_over_their_own_length_scales(k: int) -> None:
    method = trained("tpn", k=k, alpha=0.9, length_scale=0.5, hidden=4)
    support, labels, query = episode(queries=9)
    samples = torch.cat([support, query]).numpy()
    n, w = len(samples), weights(method)
    hidden = np.maximum(samples @ w["scales.layers.0.weight"].T + w["scales.layers.0.bias"], 0)
    learned = hidden @ w["scales.layers.1.weight"][0] + w["scales.layers.1.bias"][0]

    def neighbours(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        squares = ((points[:, None] - points) ** 2).sum(-1)
        near = np.zeros((n, n), bool)
        for i in range(n):
            near[i, [j for j in np.argsort(squares[i]) if j != i][:k]] = True
        return squares, near | near.T

    squares, near = neighbours(samples)
    sigma = 0.5 * np.sqrt(squares[near].mean()) * np.exp(learned)
    scaled, near = neighbours(samples / sigma[:, None])
    graph = np.where(near, np.exp(-scaled / 2), 0.0) + np.eye(n)
    roots = np.sqrt(graph.sum(1))
    start = np.zeros((n, 3))
    start[np.arange(len(labels)), labels.numpy()] = 1
    spread = np.linalg.inv(np.eye(n) - 0.9 * graph / roots[:, None] / roots) @ start
    log_p = spread - np.log(np.exp(spread).sum(1, keepdims=True))
    np.testing.assert_allclose(method(support, labels, query).detach().numpy(), log_p[len(labels) :], rtol=1e-6)
    answers = torch.arange(9) % 3
    loss, scores = method.loss(Episode(support[None], labels[None], query[None], 3), answers[None])
    everyone = torch.cat([labels, answers]).numpy()
    assert float(loss.detach()) == pytest.approx(-log_p[np.arange(n), everyone].mean(), rel=1e-6), "support too"
    np.testing.assert_allclose(scores[0].detach().numpy(), log_p[len(labels) :], rtol=1e-6)


def leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 0.01 * x)


@pytest.mark.parametrize("ways", [3, 5])
def test_gnn_passes_messages_along_learned_edges_of_one_graph_for_each_query(ways: int) -> None:
    method = trained("gnn", hidden=8, ways=ways)
    support, labels, query = episode()
    w = weights(method)
    expected = []
    for x in query.numpy():
        known = np.eye(ways)[labels.numpy()]
        unknown = np.where(np.arange(ways) < 3, 1 / 3, 0.0)
        nodes = np.concatenate([np.concatenate([support.numpy(), known], 1), [np.concatenate([x, unknown])]])
        for layer in range(3):
            adjacency = np.zeros((len(nodes), len(nodes)))
            for i in range(len(nodes)):
                for j in range(len(nodes)):
                    edge = np.abs(nodes[i] - nodes[j])
                    for number in range(3):
                        name = f"edges.{layer}.layers.{number}"
                        edge = w[f"{name}.weight"] @ (leaky(edge) if number else edge) + w[f"{name}.bias"]
                    adjacency[i, j] = 0.0 if i == j else np.exp(edge[0])
            adjacency /= adjacency.sum(1, keepdims=True)
            both = np.concatenate([nodes, adjacency @ nodes], 1)
            answer = both @ w[f"nodes.{layer}.weight"].T + w[f"nodes.{layer}.bias"]
            nodes = np.concatenate([nodes, leaky(answer)], 1)
        logits = answer[-1, :3]
        expected.append(logits - np.log(np.exp(logits).sum()))
    np.testing.assert_allclose(method(support, labels, query).detach().numpy(), np.stack(expected), rtol=1e-8)


def small_network(normalised: bool = True) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4) if normalised else nn.Identity(), nn.Tanh()]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, WIDTH)).double()


def image_episode(batch: int = 2, shots: int = 2, queries: int = 4) -> tuple[Episode, Tensor]:
    """Three classes of images, with the answers of the queries."""
    random = torch.Generator().manual_seed(0)
    labels, answers = torch.arange(3).repeat(shots).expand(batch, -1), torch.arange(3).repeat(queries).expand(batch, -1)
    centres = torch.randn(batch, 3, 3, 8, 8, generator=random, dtype=torch.float64)

    def draw(classes: Tensor) -> Tensor:
        noise = torch.randn(batch, classes.shape[1], 3, 8, 8, generator=random, dtype=torch.float64)
        return centres[:, classes[0]] + noise

    return Episode(draw(labels), labels, draw(answers), 3), answers


def by_hand(method: NetworkMethod, network: nn.Module) -> list[Tensor]:
    """Parameters of the network, then those of the head, as leaves."""
    start = [*network.parameters(), method.weight, method.bias]
    return [value.detach().clone().double().requires_grad_() for value in start]


def logits_by_hand(network: nn.Module, leaves: list[Tensor], images: Tensor) -> Tensor:
    names = [name for name, _ in network.named_parameters()]
    network.train()  # batch normalisation by the images of this pass
    features = torch.func.functional_call(network, dict(zip(names, leaves[:-2], strict=True)), (images,))
    return F.linear(features, *leaves[-2:])


@pytest.mark.parametrize("first_order", [False, True])
def test_maml_is_gradient_descent_on_the_support_and_learns_through_it(first_order: bool) -> None:
    method = create_method("maml", dim=WIDTH, ways=3, steps=3, learning_rate=0.3, first_order=first_order).double()
    assert isinstance(method, NetworkMethod)
    network, (task, answers) = small_network(), image_episode()
    start = by_hand(method, network)
    losses, expected = [], []
    for b in range(2):
        current = start
        for _ in range(3):
            inner = F.cross_entropy(logits_by_hand(network, current, task.support[b]), task.labels[b])
            slopes = torch.autograd.grad(inner, current, create_graph=not first_order)
            current = [value - 0.3 * slope for value, slope in zip(current, slopes, strict=True)]
        scores = logits_by_hand(network, current, task.query[b])
        expected.append(scores.log_softmax(-1))
        losses.append(F.cross_entropy(scores, answers[b]))
    torch.stack(losses).mean().backward()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    loss, scores = method.adapted_loss(network, task, answers)
    loss.backward()
    torch.testing.assert_close(scores, torch.stack(expected))
    for found, wanted in zip([*network.parameters(), method.weight, method.bias], start, strict=True):
        torch.testing.assert_close(found.grad, wanted.grad)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_gradients_through_the_steps_of_maml_are_the_slopes_that_differences_show() -> None:
    method = create_method("maml", dim=WIDTH, ways=3, steps=3, learning_rate=0.3).double()
    assert isinstance(method, NetworkMethod)
    network, (task, answers) = small_network(), image_episode()
    parameters = [*network.parameters(), method.weight, method.bias]
    random = torch.Generator().manual_seed(1)
    direction = [torch.randn(p.shape, generator=random, dtype=torch.float64) for p in parameters]

    def loss(move: float = 0.0) -> Tensor:
        with torch.no_grad():
            for parameter, one in zip(parameters, direction, strict=True):
                parameter.add_(one, alpha=move)
        return method.adapted_loss(network, task, answers)[0]

    loss().backward()
    slope = sum(float((p.grad * one).sum()) for p, one in zip(parameters, direction, strict=True) if p.grad is not None)
    higher, lower = float(loss(1e-5).detach()), float(loss(-2e-5).detach())
    assert slope == pytest.approx((higher - lower) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("name", ["maml", "maml+", "reptile"])
def test_one_image_of_one_class_is_enough(name: str) -> None:
    """Its features have no deviation that batch normalisation could divide by."""
    method = create_method(name, dim=4, ways=1)
    assert isinstance(method, NetworkMethod)
    network = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4))
    task = Episode(torch.randn(2, 1, 6), torch.zeros(2, 1, dtype=torch.int64), torch.randn(2, 1, 6), 1)
    assert torch.equal(method.adapted(network, task), torch.zeros(2, 1, 1))
    method.adapted_loss(network, task, torch.zeros(2, 1, dtype=torch.int64))[0].backward()
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in network.parameters())


def test_maml_fits_ten_steps_once_trained_also_without_autograd() -> None:
    method = create_method("maml", dim=WIDTH, ways=3, learning_rate=0.3).double()
    assert isinstance(method, NetworkMethod)
    network, (task, _) = small_network(), image_episode()
    with torch.no_grad():
        ten = method.adapted(network, task)
    method.steps = 10
    torch.testing.assert_close(ten, method.adapted_loss(network, task, image_episode()[1])[1].detach())
    assert not ten.requires_grad


def test_mamls_transduction_is_the_disagreement_of_neighbours() -> None:
    random = torch.Generator().manual_seed(0)
    predictions = torch.rand(6, 3, generator=random, dtype=torch.float64)
    graph = torch.rand(6, 6, generator=random, dtype=torch.float64)
    graph = graph + graph.T
    pairs = [graph[i, j] * (predictions[i] - predictions[j]).square().sum() for i in range(6) for j in range(6)]
    torch.testing.assert_close(disagreement(predictions, graph), torch.stack(pairs).sum())
    inputs = episode()
    options: dict[str, Any] = {"dim": WIDTH, "ways": 3, "learning_rate": 0.5}
    plain = create_method("maml", **options)(*inputs)
    torch.testing.assert_close(create_method("maml+", transduction=0.0, **options)(*inputs), plain)
    assert not torch.allclose(create_method("maml+", **options)(*inputs), plain, atol=1e-3)


def test_transduction_makes_neighbours_agree() -> None:
    support, labels, query = episode(queries=30)
    answers = {
        weight: create_method("maml+", dim=WIDTH, ways=3, learning_rate=0.3, transduction=weight)(
            support, labels, query
        )
        .exp()
        .detach()
        for weight in (0.0, 5.0)
    }
    method = create_method("maml+", dim=WIDTH, ways=3)
    graph = method.graph(query)  # type: ignore[operator]
    assert float(disagreement(answers[5.0], graph)) < 0.9 * float(disagreement(answers[0.0], graph))


def test_reptile_moves_towards_where_adam_ends_on_mini_batches_of_the_task() -> None:
    method = create_method("reptile", dim=WIDTH, ways=3, steps=5, batch=6, learning_rate=0.05).double()
    assert isinstance(method, NetworkMethod)
    network, (task, answers) = small_network(), image_episode()
    start, ends = by_hand(method, network), []
    for b in range(2):
        leaves = by_hand(method, network)
        optimiser = torch.optim.Adam(leaves, lr=0.05, betas=(0.0, 0.999))
        samples, labels = torch.cat([task.support[b], task.query[b]]), torch.cat([task.labels[b], answers[b]])
        turns = torch.arange(18)  # classes take turns in these episodes as they are
        for step in range(5):
            chosen = turns[[(step * 6 + i) % 18 for i in range(6)]]
            optimiser.zero_grad()
            F.cross_entropy(logits_by_hand(network, leaves, samples[chosen]), labels[chosen]).backward()
            optimiser.step()
        ends.append(leaves)
    loss, scores = method.adapted_loss(network, task, answers)
    loss.backward()
    torch.testing.assert_close(loss.detach(), F.nll_loss(scores.flatten(0, 1), answers.flatten()))
    learned = [*network.parameters(), method.weight, method.bias]
    for found, origin, first, second in zip(learned, start, *ends, strict=True):
        torch.testing.assert_close(found.grad, (origin - (first + second) / 2).detach(), rtol=1e-5, atol=1e-8)


def test_every_mini_batch_of_reptile_has_some_of_every_class() -> None:
    from team.methods.reptile import _taking_turns

    labels = torch.tensor([[0, 0, 0, 1, 1, 1, 2, 2, 2], [2, 0, 1, 1, 0, 2, 2, 1, 0]])
    order = _taking_turns(labels, 3)
    assert labels.gather(1, order).tolist() == [[0, 1, 2] * 3] * 2
    assert order.sort(-1).values.tolist() == [list(range(9))] * 2


# --- images and features ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["maml", "maml+", "reptile"])
def test_given_features_the_head_alone_is_fitted(name: str) -> None:
    method = trained(name, test_steps=4).double()
    assert isinstance(method, NetworkMethod)
    support, labels, query = episode()
    whole = method.adapted(nn.Identity(), Episode(support[None], labels[None], query[None], 3))[0]
    assert torch.equal(method(support, labels, query), whole)
    untrained = create_method(name)
    many = episode(shots=(1,) * 50, queries=8)
    assert untrained(*many).shape == (8, 50), "without dim the head starts at zero, for any number of classes"


@pytest.mark.parametrize("backbone", ["conv4", "resnet18"])
@pytest.mark.parametrize("name", ["maml", "maml+", "reptile"])
def test_both_networks_can_be_fitted(name: str, backbone: str) -> None:
    options = {"filters": 2} if backbone == "conv4" else {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = create_backbone(backbone, **options)
    method = create_method(name, dim=network.dim, ways=2, steps=1, test_steps=1)
    assert isinstance(method, NetworkMethod)
    images = torch.rand(1, 6, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    answers = torch.tensor([[0, 1, 0, 1]])
    task = Episode(images[:, :2], torch.tensor([[0, 1]]), images[:, 2:], 2)
    loss, _ = method.adapted_loss(network, task, answers)
    loss.backward()
    for parameter in network.parameters():
        assert parameter.grad is not None
        assert bool(torch.isfinite(parameter.grad).all())
    with torch.no_grad():
        assert method.adapted(network, task).shape == (1, 4, 2)


# --- what every one of them keeps -------------------------------------------------------------------------------------


@every_variant
def test_a_batch_equals_its_episodes_one_by_one_and_probabilities_sum_to_one(
    name: str, options: dict[str, Any]
) -> None:
    method = trained(name, **options)
    support, labels, query = episode(batch=4)
    together = method(support, labels, query)
    one_by_one = torch.stack([method(*single) for single in zip(support, labels, query, strict=True)])
    torch.testing.assert_close(together, one_by_one, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(together.exp().sum(-1), torch.ones(4, 7, dtype=torch.float64))


@every_variant
def test_the_order_of_queries_and_supports_does_not_matter(name: str, options: dict[str, Any]) -> None:
    method = trained(name, **options)
    support, labels, query = episode(queries=9)
    query[5] = query[2]
    answer = method(support, labels, query)
    order = torch.tensor([4, 2, 0, 8, 1, 3, 7, 6, 5])
    torch.testing.assert_close(method(support, labels, query[order]), answer[order])
    order = torch.tensor([3, 5, 0, 1, 4, 2])
    torch.testing.assert_close(method(support[order], labels[order], query), answer)


@every_variant
def test_the_transductive_flag_tells_whether_queries_see_one_another(name: str, options: dict[str, Any]) -> None:
    method = trained(name, **options)
    support, labels, query = episode()
    together, alone = method(support, labels, query)[:1], method(support, labels, query[:1])
    assert method.transductive is not torch.allclose(together, alone)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@every_variant
def test_odd_episodes_give_finite_answers_and_gradients(name: str, options: dict[str, Any], dtype: torch.dtype) -> None:
    for case, (support, labels, query) in odd_episodes().items():
        method = trained(name, ways=int(labels.max()) + 1, dim=support.shape[-1], learn_temperature=True, **options)
        if dtype == torch.float16 and case == "an outlier":
            query = query.clamp(-6e4, 6e4)
        support, query = support.to(dtype).requires_grad_(), query.to(dtype).requires_grad_()
        answer = method(support, labels, query)
        assert answer.dtype == torch.promote_types(dtype, torch.float32), case
        assert bool(torch.isfinite(answer).all()), case
        torch.testing.assert_close(answer.exp().sum(-1), torch.ones_like(answer[:, 0]), rtol=1e-4, atol=1e-4)
        task = Episode(support[None], labels[None], query[None], int(labels.max()) + 1)
        answers = (torch.arange(len(query)) % task.ways)[None]
        method.loss(task, answers)[0].backward()
        finite = torch.isfinite if dtype != torch.float16 else lambda gradient: ~torch.isnan(gradient)
        for leaf in (support, query, *method.parameters()):
            assert leaf.grad is None or bool(finite(leaf.grad).all()), case


@every_variant
def test_all_that_is_learned_receives_a_gradient(name: str, options: dict[str, Any]) -> None:
    method = trained(name, **options)
    support, labels, query = episode(batch=2, dtype=torch.float32)
    method.loss(Episode(support, labels, query, 3), torch.tensor([[0, 1, 2, 0, 1, 2, 0]] * 2))[0].backward()
    for what, parameter in method.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, what
            softmax = name == "gnn" and what.endswith("layers.2.bias")  # adds the same to all edges: no difference
            assert softmax or bool((parameter.grad != 0).any()), what


@every_variant
def test_weights_depend_on_the_seed_and_leave_the_global_generator_alone(name: str, options: dict[str, Any]) -> None:
    state = torch.get_rng_state()
    first, again, other = (create_method(name, dim=WIDTH, seed=seed, **options).state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, again[what]) for what, value in first.items())
    assert any(not torch.equal(value, other[what]) for what, value in first.items())


@every_variant
def test_log_probabilities_never_wait_for_the_device(name: str, options: dict[str, Any]) -> None:
    """Fake tensors hold no values, so any decision on one raises."""
    with FakeTensorMode():
        method = create_method(name, dim=8, learn_temperature=True, **options)
        support = torch.randn(2, 5, 8, requires_grad=True)
        labels = torch.zeros(2, 5, dtype=torch.int64)
        task = Episode(support, labels, torch.randn(2, 9, 8), ways=5)
        assert method.log_probabilities(task).shape == (2, 9, 5)
        method.loss(task, torch.zeros(2, 9, dtype=torch.int64))[0].backward()


# --- the door ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["relationnet", "gnn"])
def test_what_is_missing_is_said(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} has learned weights.*create it with dim=6 and train it"):
        create_method(name)(*episode())


@pytest.mark.parametrize("name", ["relationnet", "tpn", "gnn", "maml", "maml+", "reptile"])
def test_features_of_another_width_are_turned_away(name: str) -> None:
    with pytest.raises(ValueError, match=r"was made for 5 features per sample \(its option dim\), not for 6"):
        create_method(name, dim=5)(*episode())


@pytest.mark.parametrize("name", ["gnn", "maml", "maml+", "reptile"])
def test_fewer_classes_than_trained_for_are_welcome_and_more_are_not(name: str) -> None:
    method = create_method(name, dim=WIDTH, ways=4)
    assert method(*episode()).shape == (7, 3)
    with pytest.raises(ValueError, match=r"of 4 classes \(its option ways\), and the episode has 5; train one with"):
        method(*episode(shots=(1,) * 5))


@pytest.mark.parametrize("name", ["relationnet", "tpn"])
def test_the_number_of_classes_is_free_where_the_formula_leaves_it_so(name: str) -> None:
    method = trained(name)
    for ways in (2, 3, 50):
        assert method(*episode(shots=(1,) * ways)).shape == (7, ways)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("relationnet", {"hidden": 0}, "hidden must be a whole number, 1 or more, not 0"),
        ("relationnet", {"dim": 2.5}, "dim must be a whole number, 1 or more, not 2.5"),
        ("tpn", {"dim": True}, "dim must be a whole number"),
        ("tpn", {"alpha": 1.0}, "alpha must lie between 0 and 1"),
        ("gnn", {"ways": 0}, "ways must be a whole number, 1 or more"),
        ("gnn", {"hidden": 1}, "hidden must be a whole number, 2 or more"),
        ("gnn", {"layers": -1}, "layers must be a whole number, 0 or more"),
        ("maml", {"steps": -1}, "steps must be a whole number, 0 or more"),
        ("maml", {"learning_rate": 0.0}, "learning_rate must be positive"),
        ("maml", {"ways": "5"}, "ways must be a whole number"),
        ("maml+", {"transduction": -1.0}, "transduction must be finite and not negative"),
        ("maml+", {"k": 0}, "k must be a whole number, 1 or more"),
        ("reptile", {"batch": 0}, "batch must be a whole number, 1 or more"),
    ],
)
def test_wrong_options_are_turned_away(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        create_method(name, **options)
