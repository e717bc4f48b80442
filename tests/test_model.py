"""Claims about models: a saved one answers as before, and a file that is not one is named."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from conftest import tiny_episodic, tiny_images, tiny_model
from torch import Tensor, nn

from team.methods import TEAM, create_method
from team.model import Model, average_models, load_model
from team.training.checkpoint import CheckpointError
from team.training.episodic import EpisodicTraining
from team.training.loop import train


def answers(model: Model) -> Tensor:
    """Log-probabilities of one 3-way 2-shot episode of images."""
    images = torch.rand(15, 3, 32, 32, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        features = model.network.eval()(images)
        answer: Tensor = model.method(features[:6], torch.arange(3).repeat(2), features[6:])
    return answer


class Own(nn.Module):
    """A network such as a user brings."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, width, 5, stride=4)

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.layer(images).relu().mean((-2, -1))
        return features


def own_model() -> Model:
    return Model(Own(), create_method("team", k=3), "", {}, "team", {"k": 3}, 32)


@pytest.mark.parametrize("method", ["protonet", "team"])
def test_a_model_answers_after_loading_as_it_did_before(tmp_path: Path, method: str) -> None:
    model = tiny_model(method, temperature=3.0, learn_temperature=True, seed=5)
    with torch.no_grad():
        model.method.log_temperature.add_(0.5)
    model.info["note"] = "ψ"
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = load_model(path)
    assert torch.equal(answers(again), answers(model))
    assert again.description() == model.description()
    assert again.seen_prototypes is None
    assert not again.network.training
    assert not again.method.training


def test_seen_prototypes_travel_with_the_model_and_its_method_uses_them(tmp_path: Path) -> None:
    plain, model = tiny_model(lam=1.0), tiny_model(lam=1.0)
    model.seen_prototypes = torch.randn(6, 16, generator=torch.Generator().manual_seed(0))
    model.save(tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors")
    assert again.seen_prototypes is not None
    assert torch.equal(again.seen_prototypes, model.seen_prototypes)
    model.method = create_method("team", lam=1.0, seen=model.seen_prototypes)
    assert torch.equal(answers(again), answers(model))
    assert not torch.allclose(answers(again), answers(plain), atol=1e-4)


def test_a_network_of_ones_own_is_given_again_to_load_it(tmp_path: Path) -> None:
    model = own_model()
    path = tmp_path / "own.safetensors"
    model.save(path)
    with pytest.raises(CheckpointError, match=r"own\.safetensors was trained with a network of one's own: pass it"):
        load_model(path)
    again = load_model(path, network=Own())
    assert torch.equal(answers(again), answers(model))
    other = Own(width=7)
    before = copy.deepcopy(other.state_dict())
    with pytest.raises(CheckpointError, match=r"own\.safetensors has layer\.weight of shape \[6, 3, 5, 5\]"):
        load_model(path, network=other)
    assert all(torch.equal(value, before[name]) for name, value in other.state_dict().items())


def test_the_state_of_a_run_is_not_a_model(tmp_path: Path) -> None:
    settings = tiny_episodic(episodes=1)
    train(EpisodicTraining(tiny_model(), tiny_images(), tiny_images(4, seed=1), settings), tmp_path, show=False)
    with pytest.raises(CheckpointError, match=r"last\.safetensors is the state of a training run, not a model"):
        load_model(tmp_path / "last.safetensors")
    assert isinstance(load_model(tmp_path / "best.safetensors").method, TEAM)


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"there is no checkpoint .*nowhere\.safetensors"):
        load_model(tmp_path / "nowhere.safetensors")


def test_an_average_has_the_mean_of_all_weights(tmp_path: Path) -> None:
    models = [tiny_model("team", learn_temperature=True, seed=seed) for seed in (1, 2, 3)]
    for number, model in enumerate(models):
        model.info["training"] = {"seed": number}
        with torch.no_grad():
            model.method.log_temperature.fill_(float(number))
    before = copy.deepcopy(models[0].network.state_dict())
    mean = average_models(models)
    for name, tensor in mean.network.state_dict().items():
        values = [model.network.state_dict()[name] for model in models]
        expected = sum(values) / 3 if tensor.is_floating_point() else values[0]
        torch.testing.assert_close(tensor, expected)
    assert float(mean.method.log_temperature.detach()) == pytest.approx(1.0)
    assert mean.info["members"] == [{"seed": 0}, {"seed": 1}, {"seed": 2}]
    assert all(torch.equal(before[name], tensor) for name, tensor in models[0].network.state_dict().items())
    assert "members" not in models[0].info
    mean.save(tmp_path / "mean.safetensors")
    assert torch.equal(answers(load_model(tmp_path / "mean.safetensors")), answers(mean))
    alone = average_models(models[:1])
    assert torch.equal(answers(alone), answers(models[0]))


def test_models_of_different_kinds_have_no_average() -> None:
    with pytest.raises(ValueError, match="differ in backbone_options"):
        average_models([tiny_model(), tiny_model(filters=8)])
    with pytest.raises(ValueError, match="differ in method, method_options"):
        average_models([tiny_model("team"), tiny_model("protonet", temperature=2.0)])
    with pytest.raises(ValueError, match="at least one"):
        average_models([])
    known = tiny_model()
    known.seen_prototypes = torch.zeros(3, 4)
    with pytest.raises(ValueError, match="seen-class prototypes"):
        average_models([tiny_model(), known])
