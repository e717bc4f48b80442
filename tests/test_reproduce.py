"""From a recipe to a row of a table: trained, chosen on validation classes, evaluated, written down."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from team.data.images import ImageSet
from team.data.sampling import Sampling
from team.evaluation import features
from team.model import Model, load_model
from team.recipes import RECIPES, Variant, conv4, reproduce, run
from team.recipes.__main__ import main as train_cells
from team.recipes.run import Runner
from team.recipes.tables import PAPER, TABLES
from team.results import read_results
from team.training.checkpoint import CheckpointError


def stripes(part: str, classes: int, each: int = 18) -> ImageSet:
    """Classes of 32×32 images that differ in the direction and the width of their stripes."""
    generator = torch.Generator().manual_seed(sum(map(ord, part)))
    y, x = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
    pictures = []
    for label in range(classes):
        angle, width = 3.14 * label / classes, 2 + label % 3
        phase = 6.28 * torch.rand(each, 1, 1, generator=generator)
        wave = torch.sin((x * torch.cos(torch.tensor(angle)) + y * torch.sin(torch.tensor(angle))) / width + phase)
        noise = 20 * torch.randn(each, 3, 32, 32, generator=generator)
        pictures.append((128 + 80 * wave[:, None] + noise).clamp(0, 255).byte())
    names = tuple(f"{part} {label}" for label in range(classes))
    labels = torch.arange(classes).repeat_interleave(each)
    return ImageSet(torch.cat(pictures), labels, names, f"stripes {part}", f"checksum of {part}")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Recipes on a small data set; gives the list of parts that were read, in order."""
    parts: list[str] = []

    def load(name: str, part: str, **_: object) -> ImageSet:
        parts.append(part)
        return stripes(part, {"train": 8, "val": 6, "test": 6}[part])

    recipe = conv4.CUB
    assert recipe.pretrain is not None
    small = replace(
        recipe,
        size=32,
        choice_episodes=20,
        pretrain=replace(recipe.pretrain, epochs=2, batch=48, validations=1, validation_episodes=10),
        episodic=replace(recipe.episodic, episodes=8, per_step=2, validate_every=4, validation_episodes=10),
    )
    monkeypatch.setattr(run, "load", load)
    monkeypatch.setitem(RECIPES, recipe.name, small)
    monkeypatch.setattr(reproduce, "list_weights", list)
    return parts


def test_cells_may_start_from_a_model_pre_trained_before_on_the_same_images(asked: list[str], tmp_path: Path) -> None:
    recipe = RECIPES["cub-conv4"]
    first = Runner(recipe, tmp_path / "first", show=False)
    assert recipe.pretrain is not None
    first.pretrain(recipe.pretrain)
    started = Runner(recipe, tmp_path / "second", show=False, pretrained=first.pretrained_path)
    started.train_cell("baseline", 1)
    assert [path.name for path in (tmp_path / "second").iterdir()] == ["cub-conv4-1shot-baseline"]
    first.train_cell("baseline", 1)
    both = [load_model(runner.model_path("baseline", 1)) for runner in (first, started)]
    assert both[0].info["pretraining"] == both[1].info["pretraining"]
    states = [model.network.state_dict() for model in both]
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


def test_a_model_pre_trained_on_other_images_or_not_at_all_is_no_start(asked: list[str], tmp_path: Path) -> None:
    recipe = RECIPES["cub-conv4"]
    model = Model.create("conv4", "team", 32)
    for about in ({}, {"pretraining": {"data": "checksum of test"}}):
        model.info = dict(about)
        model.save(tmp_path / "model.safetensors")
        runner = Runner(recipe, tmp_path, show=False, pretrained=tmp_path / "model.safetensors")
        with pytest.raises(ValueError, match="was pre-trained on other images than the training classes of cub-conv4"):
            runner.train_cell("baseline", 1)
    model.info = {"pretraining": {"data": "checksum of train"}, "training": {}}
    model.save(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="was trained on episodes already"):
        runner.train_cell("baseline", 1)
    model.info = {}
    model.save(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="does not say how it was pre-trained"):
        model.start_from(tmp_path / "model.safetensors")


def test_a_cell_goes_from_recipe_to_result_file(asked: list[str], tmp_path: Path) -> None:
    rows = reproduce.reproduce("table3", results=tmp_path / "results", runs=tmp_path / "runs", only="conv4-1shot")
    done = {row.method: row for row in rows if row.ours is not None}
    assert set(done) == {"baseline", "team"}
    facts = json.loads((tmp_path / "results" / "cub-conv4-1shot-team.json").read_text())
    assert facts["mean"] == done["team"].ours
    assert facts["episodes"] == 1000
    assert facts["data"] == {"train": "checksum of train", "test": "checksum of test"}
    assert facts["chosen_on"] == "validation classes"
    assert facts["settings"]["training"]["shots"] == 1
    accuracies = json.loads(
        gzip.decompress((tmp_path / "results/cub-conv4-1shot-team.accuracies.json.gz").read_bytes())
    )
    assert len(accuracies) == 1000
    assert sum(accuracies) / 1000 == pytest.approx(facts["mean"], abs=1e-3)


def test_test_images_are_read_last_and_only_to_evaluate(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_CACHE", str(tmp_path / "cache"))
    runner = Runner(RECIPES["cub-conv4"], tmp_path / "runs", show=False)
    runner.train_cell("team", 1)
    assert set(asked) == {"train", "val"}
    model = load_model(runner.model_path("team", 1))
    assert model.info["temperature"]["chosen"] == pytest.approx(float(model.method.temperature.detach()), rel=1e-5)
    tried = model.info["temperature"]["validation"]
    best = max(tried, key=tried.__getitem__)
    assert model.info["temperature"]["chosen"] == pytest.approx(float(best) * model.info["temperature"]["learned"])
    assert model.info["temperature"]["at_the_edge"] == (float(best) in (min(run._TEMPERATURES), max(run._TEMPERATURES)))
    written = runner.model_path("team", 1).stat().st_mtime_ns
    assert runner.train_cell("team", 1).complete
    assert runner.model_path("team", 1).stat().st_mtime_ns == written, "what was chosen is not chosen again"
    result = runner.evaluate_cell(model, "team", 1, tmp_path / "results", episodes=10)
    assert asked[-1] == "test"
    skewed = runner.evaluate_cell(model, "team", 1, tmp_path / "results", episodes=10, sampling=Sampling("uniform"))
    assert (skewed.facts["sampling"], skewed.facts["present"]) == ("uniform", None)
    assert 0 <= skewed.facts["calibration_error"] <= 100
    assert result.facts["temperature_choice"] == model.info["temperature"]
    other = runner.evaluate_cell(model, "team", 2, tmp_path / "results", episodes=10)
    assert (other.cell, other.facts["shots"]) == ("cub-conv4-1shot-team-at-2shot", 2)
    weights = runner.model_path("team", 1)
    for _ in range(2):
        monkeypatch.setattr(run, "embed", None)  # features come from the cache, where they are put the first time
        kept = runner.evaluate_cell(model, "team", 1, None, episodes=10, weights=weights)
        assert kept.facts["mean"] == result.facts["mean"]
        monkeypatch.setattr(features, "embed", None)
    written = {"cub-conv4-1shot-team", "cub-conv4-1shot-team-uniform", "cub-conv4-1shot-team-at-2shot"}
    assert set(read_results(tmp_path / "results")) == written


def test_pre_training_may_see_images_of_another_size(asked: list[str], tmp_path: Path) -> None:
    runner = Runner(replace(RECIPES["cub-conv4"], pretrain_size=40), tmp_path / "runs", show=False)
    runner.train_cell("baseline", 1)
    assert load_model(runner.pretrained_path).size == 40
    assert load_model(runner.model_path("baseline", 1)).size == 32


def test_a_cell_may_be_the_mean_of_trainings_with_other_seeds(asked: list[str], tmp_path: Path) -> None:
    start = RECIPES["cub-conv4"]
    recipe = replace(start, name="cub-conv4-mean", start=start, members=2)
    runner = Runner(recipe, tmp_path / "runs", show=False)
    outcome = runner.train_cell("team", 1)
    assert runner.pretrained_path == tmp_path / "runs" / "cub-conv4-pretrained" / "best.safetensors"
    path = runner.model_path("team", 1)
    model = load_model(path)
    members = [load_model(path.parent / f"member-{number}" / "best.safetensors") for number in range(2)]
    assert [member["settings"]["seed"] for member in model.info["members"]] == [0, 1]
    ours, theirs = model.network.state_dict(), [member.network.state_dict() for member in members]
    moved = [name for name in ours if not torch.equal(theirs[0][name], theirs[1][name])]
    assert len(moved) > len(ours) / 2, "seeds lead to other weights"
    for name in moved:
        torch.testing.assert_close(ours[name], (theirs[0][name] + theirs[1][name]) / 2)
    assert outcome.complete
    assert outcome.best == model.info["training"]["validation_accuracy"]
    written = path.stat().st_mtime_ns
    assert runner.train_cell("team", 1).best == outcome.best
    assert path.stat().st_mtime_ns == written, "what is done is not done again"
    assert not Runner(recipe, tmp_path / "late", show=False).train_cell("team", 1, time_limit=0).complete
    assert "test" not in asked


@pytest.mark.parametrize("members", [1, 2])
def test_what_has_no_weights_may_be_changed_once_a_cell_is_trained(
    asked: list[str], tmp_path: Path, members: int
) -> None:
    start = RECIPES["cub-conv4"]
    recipe = replace(start, name="cub-conv4-mean", start=start, members=members, at_test={"mirror": False})
    runner = Runner(recipe, tmp_path / "runs", show=False)
    outcome = runner.train_cell("team", 1)
    path = runner.model_path("team", 1)
    model, folder = load_model(path), path.parent if members == 1 else path.parent / "member-0"
    trained = load_model(folder / "best.safetensors")
    assert (trained.backbone_options["mirror"], model.backbone_options["mirror"]) == (True, False)
    assert trained.network.views == 2
    assert model.network.views == 1
    assert outcome.best == model.info["training"]["validation_accuracy"]
    again = replace(runner, recipe=replace(recipe, at_test={"mirror": True}))
    again.train_cell("team", 1)
    assert load_model(path).network.views == 2, "another choice is another model"
    with pytest.raises(CheckpointError, match=r"the network with \{'filters': 8\} .* made for another network"):
        model.with_backbone_options({"filters": 8})


@pytest.mark.parametrize("variant", ["team", "maml", "gnn"])
def test_a_quick_recipe_is_quick_for_every_method(variant: Variant) -> None:
    settings = RECIPES["miniimagenet-conv4"].quick().settings(variant, 5)
    assert (settings.episodes, settings.validate_every, settings.validation_episodes) == (4, 4, 10)
    assert settings.statistics == RECIPES["miniimagenet-conv4"].settings(variant, 5).statistics


def test_a_cell_with_a_result_is_not_run_again(asked: list[str], tmp_path: Path) -> None:
    for _ in range(2):
        reproduce.reproduce(
            "table3", results=tmp_path / "r", runs=tmp_path / "runs", only="conv4-1shot-team", quick=True
        )
    assert asked.count("test") == 1
    assert list(read_results(tmp_path / "r")) == ["cub-conv4-1shot-team"]


def test_cells_are_trained_one_after_another_until_the_time_is_up(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = ["cub-conv4-1shot-baseline", "cub-conv4-1shot-team"]
    train_cells([*cells, "--runs", str(tmp_path), "--device", "cpu"])
    assert all((tmp_path / cell / "model.safetensors").exists() for cell in cells)
    assert asked == ["train", "val"], "each part is read once, the test part not at all"
    train_cells([*cells, "--runs", str(tmp_path / "other"), "--device", "cpu", "--seconds", "0"])
    assert "out of time before cub-conv4-1shot-baseline" in capsys.readouterr().out


def test_every_cell_of_every_table_has_a_recipe_and_a_figure_of_the_paper() -> None:
    for table in TABLES.values():
        for name, variant, shots in table.cells:
            semi_baseline = (name, variant) == ("miniimagenet-conv4-semi", "baseline")  # the paper has no such row
            assert ((name, variant, shots) in PAPER) != semi_baseline
            assert RECIPES[name].settings(variant, shots).shots == shots


def test_a_damaged_result_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(ValueError, match=r"x\.json is not a result file"):
        read_results(tmp_path)
    (tmp_path / "x.json").write_text('{"cell": "x"}')
    with pytest.raises(ValueError, match="it has no dataset"):
        read_results(tmp_path)
