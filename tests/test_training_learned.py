"""Claims about training methods with learned parts: the same trainer, files, resumption and evaluation as for TEAM."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import tiny_episodic, tiny_images, tiny_model
from test_resume import Stop, assert_same_bits, tensors
from torch import Tensor

from team.data.augment import normalise
from team.data.sampler import EpisodeSampler
from team.episode import Episode
from team.evaluation.embed import evaluate_images
from team.methods import create_method
from team.methods.network import NetworkMethod
from team.model import Model, load_model
from team.recipes import RECIPES, parse_cell
from team.recipes.learned import LEARNED
from team.recipes.recipe import Variant
from team.recipes.run import Runner
from team.seeding import generator
from team.training.average import WeightAverage
from team.training.episodic import EpisodicTraining
from team.training.loop import train
from team.training.settings import EpisodicSettings, from_json, to_json
from team.training.step import Step

every_method = pytest.mark.parametrize("name", LEARNED)
OPTIONS: dict[str, dict[str, Any]] = {
    "gnn": {"ways": 3, "hidden": 8},
    "maml": {"ways": 3, "steps": 2, "test_steps": 3},
    "maml+": {"ways": 3, "steps": 2, "test_steps": 3},
    "reptile": {"ways": 3, "steps": 3, "test_steps": 3},
}


def objective(name: str, device: str = "cpu", **changes: Any) -> EpisodicTraining:
    few = LEARNED[name].settings | {"per_step": 2, "episodes": 16, "validate_every": 10, "average": 0.9}
    few |= {"validation_episodes": 4, "ways": 3}
    model = tiny_model(name, **OPTIONS.get(name, {}))
    model.network.to(device)
    return EpisodicTraining(model, tiny_images(), tiny_images(4, seed=1), tiny_episodic(**few | changes))


@every_method
def test_a_model_gives_its_method_the_width_of_its_features_and_both_are_kept(name: str, tmp_path: Path) -> None:
    model = tiny_model(name, **OPTIONS.get(name, {}))
    assert model.method_options["dim"] == 16
    with torch.no_grad():
        for parameter in model.method.parameters():
            parameter.add_(0.1)
    model.save(tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors")
    images = tiny_images(4, 10)
    settings: dict[str, Any] = {"ways": 3, "queries": 4, "episodes": 4, "statistics": "episode"}
    before, after = (evaluate_images(m.network, m.method, images, **settings).accuracies for m in (model, again))
    assert torch.equal(before, after)
    assert again.description() == model.description()


@every_method
def test_a_run_that_is_interrupted_ends_with_the_bits_of_one_that_is_not(name: str, tmp_path: Path) -> None:
    train(objective(name), tmp_path / "whole", show=False)
    stopped = objective(name)
    draw = stopped.draw

    def stop(step: int) -> dict[str, Tensor]:
        if step == 5:
            raise Stop
        return draw(step)

    stopped.draw = stop  # type: ignore[method-assign]
    with pytest.raises(Stop):
        train(stopped, tmp_path / "parts", show=False, checkpoint_seconds=0)
    train(objective(name), tmp_path / "parts", show=False)
    for file in ("last", "best"):
        assert_same_bits(tensors(tmp_path / "parts", file), tensors(tmp_path / "whole", file))
    start = tiny_model(name, **OPTIONS.get(name, {}))
    end = tensors(tmp_path / "whole", "last")
    for part, module in (("network", start.network), ("method", start.method)):
        for what, parameter in module.named_parameters():
            if parameter.requires_grad:
                assert not torch.equal(parameter.detach(), end[f"module.{part}.{what}"]), what


@pytest.mark.parametrize(("name", "episodes"), [("relationnet", 240), ("maml", 60)])
def test_training_learns_what_helps_with_classes_it_never_saw(name: str, episodes: int, tmp_path: Path) -> None:
    images, validation = tiny_images(20, 12), tiny_images(6, 12, seed=1)
    changes = LEARNED[name].settings | {"ways": 3, "episodes": episodes, "validate_every": episodes}
    changes |= {"validation_episodes": 30, "per_step": 4, "learning_rate": 5e-3, "average": 0.9}
    settings = tiny_episodic(**changes)
    training = EpisodicTraining(tiny_model(name, filters=8, **OPTIONS.get(name, {})), images, validation, settings)
    before = training.validate()
    assert train(training, tmp_path, show=False).best > before + 5


@pytest.mark.parametrize("name", ["maml", "maml+", "reptile"])
def test_images_are_evaluated_by_the_network_as_fitted_to_each_episode(name: str) -> None:
    model, images = tiny_model(name, **OPTIONS[name]), tiny_images(4, 10)
    assert isinstance(model.method, NetworkMethod)
    found = evaluate_images(
        model.network, model.method, images, ways=3, shots=2, queries=4, episodes=3, statistics="episode", size=32
    )
    drawn = EpisodeSampler(images.labels, ways=3, shots=2, queries=4).sample(3, generator(0, "evaluation", 0))
    for number in range(3):
        support, query = (normalise(images.images[index[number]])[None] for index in (drawn.support, drawn.query))
        scores = model.method.adapted(model.network, Episode(support, drawn.support_labels[:1], query, 3))
        right = (scores.argmax(-1) == drawn.query_labels[:1]).double().mean()
        assert float(found.accuracies[number]) == pytest.approx(100 * float(right))


def test_what_does_not_fit_is_said_before_training() -> None:
    with pytest.raises(ValueError, match=r"maml fits the network to each episode.*statistics='episode', not 'running'"):
        objective("maml", statistics="running")
    with pytest.raises(ValueError, match="use statistics='episode'"):
        evaluate_images(tiny_model("reptile").network, create_method("reptile", dim=16), tiny_images(6, 20))
    with pytest.raises(ValueError, match=r"gnn was made for one-hot labels of 3 classes.*has 4"):
        objective("gnn", validation_ways=4)
    with pytest.raises(ValueError, match="maml has a learned head of 3 classes"):
        objective("maml", ways=4)
    with pytest.raises(ValueError, match="seen_prototypes are features, and maml trains on images"):
        objective("maml", seen_prototypes=True)
    method = create_method("relationnet")
    model = Model(tiny_model().network, method, "", {}, "relationnet", {}, 32)
    with pytest.raises(ValueError, match="create it with dim=16"):
        EpisodicTraining(model, tiny_images(), tiny_images(4, seed=1), tiny_episodic())


def test_a_step_of_reptile_goes_a_part_of_the_way_to_where_fitting_ended() -> None:
    """Its gradient is φ - φ', see test_methods_learned."""
    training = objective("reptile", learning_rate=0.25)
    optimiser, weight = training.optimiser(), training.model.method.weight
    training.loss(training.draw(0))[0].backward()
    assert weight.grad is not None
    expected = weight.detach() - 0.25 * weight.grad
    optimiser.step()
    torch.testing.assert_close(weight.detach(), expected)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device to capture a graph on")
@every_method
def test_a_step_captured_in_a_graph_has_the_gradients_of_an_eager_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)

    def gradients(graph: bool) -> Tensor:
        training = objective(name, device="cuda")
        average = WeightAverage(training.module, 0.9)
        step = Step(training.loss, training.optimiser(), average, torch.device("cuda"), graph)
        for number in range(6):  # at a learning rate of 0: all from the same weights
            average.prepare(number)
            step(training.draw(number), 0.0)
        return torch.cat([p.grad.flatten() for p in training.module.parameters() if p.grad is not None])

    eager, captured = gradients(graph=False), gradients(graph=True)
    assert float(eager.norm()) > 0
    assert float((captured - eager).norm()) < 1e-2 * float(eager.norm())


@every_method
@pytest.mark.parametrize("recipe", [r.name for r in RECIPES.values() if r.partitions == 1 and not r.at_test])
def test_every_recipe_has_a_cell_for_every_method(recipe: str, name: str) -> None:
    found, variant, shots = parse_cell(f"{recipe}-5shot-{name}")
    assert (found.name, variant, shots) == (recipe, name, 5)
    settings = found.settings(variant, 5)
    assert settings.shots == 5
    assert from_json(EpisodicSettings, json.loads(json.dumps(to_json(settings)))) == settings
    assert found.method_name(variant) == name
    method = create_method(name, dim=256, **found.method_options(variant))
    method.check_sizes(ways=settings.validation_ways, shots=5, dim=256)
    if isinstance(method, NetworkMethod):
        method.check_statistics(settings.statistics)


@every_method
def test_a_network_with_other_features_at_test_trains_nothing_made_for_those_it_had(name: str) -> None:
    with pytest.raises(ValueError, match="is no cell"):
        parse_cell(f"miniimagenet-resnet18-mean-5shot-{name}")


@pytest.mark.parametrize(
    ("cell", "options", "statistics"),
    [("maml+", {"dim": 16, "first_order": True}, "episode"), ("team+", {"learn_temperature": True}, "running")],
)
def test_a_cell_is_trained_kept_and_evaluated_by_its_recipe(
    cell: Variant, options: dict[str, Any], statistics: str, tmp_path: Path
) -> None:
    quick = RECIPES["glyphs-conv4"].quick()
    fewer = quick.by_variant[cell] | {"validation_episodes": 3, "validation_queries": 3, "queries": 3}
    recipe = replace(quick, backbone_options={"filters": 4}, by_variant={cell: fewer})
    loaded = {part: tiny_images(6, 20, seed=seed) for seed, part in enumerate(("train", "val", "test"))}
    runner = Runner(recipe, tmp_path, show=False, _loaded=loaded)
    runner.train_cell(cell, 1)
    model = load_model(runner.model_path(cell, 1))
    assert (model.method_name, model.info["variant"], model.info["recipe"]) == (cell, cell, "glyphs-conv4")
    assert model.method_options == options
    result = runner.evaluate_cell(model, cell, 1, None, episodes=3)
    assert result.facts["batch_normalisation"] == statistics


def test_the_recipe_of_the_glyphs_draws_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_CACHE", str(tmp_path))
    assert Runner(RECIPES["glyphs-conv4"], tmp_path).images("val").name.startswith("glyphs val (32 px")
