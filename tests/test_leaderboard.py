"""Claims about the leaderboard: same episodes for all, choices on validation classes, nothing stale, all from JSON."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import tiny_episodic, tiny_images, tiny_model
from PIL import Image
from rich.console import Console

from team import create_method, evaluate, list_methods
from team.cli.tables import leaderboard
from team.data.sampling import BALANCED, Sampling
from team.evaluation import by_class, embed
from team.leaderboard import Selection, bench, selection, write_leaderboard, write_report
from team.leaderboard.prepared import Prepared
from team.leaderboard.report import terminal_tables
from team.leaderboard.run import add_comparisons, read_settings, run, tune
from team.leaderboard.settings import GRIDS, TRAINED, build, settings_of
from team.recipes import RECIPES, Recipe
from team.recipes.run import Runner

ROOT = Path(__file__).resolve().parent.parent
DIRICHLET = Sampling("dirichlet")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 16 classes of 22 images, which its split divides into 6, 5 and 5 classes."""
    folder, images = tmp_path_factory.mktemp("pictures"), tiny_images(16, 22, noise=130.0)
    for number, (pixels, label) in enumerate(zip(images.images, images.labels.tolist(), strict=True)):
        path = folder / images.classes[label] / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(path)
    return folder


@pytest.fixture
def chosen(tmp_path: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch) -> Selection:
    """Two methods on a network with random weights, for that folder."""
    monkeypatch.setenv("TEAM_CACHE", str(tmp_path / "cache"))
    recipe = Recipe("folder-conv4", "folder", "0.375-0.3125-0.3125@0", "conv4", 32, tiny_episodic())
    monkeypatch.setitem(RECIPES, recipe.name, recipe)
    (tmp_path / "weights").mkdir()
    tiny_model().save(tmp_path / "weights" / "folder-conv4-1shot-baseline.safetensors")
    return selection_of(folder=tmp_path / "weights")


def selection_of(**changes: Any) -> Selection:
    values: dict[str, Any] = {"methods": ("protonet", "simpleshot"), "datasets": ("folder",), "backbones": ("conv4",)}
    values |= {"networks": ("baseline",), "shots": (1,), "episodes": 20, "tuning_episodes": 4}
    return Selection(**values | changes)


def test_figures_are_those_of_evaluate_with_the_chosen_settings(
    chosen: Selection, pictures: Path, tmp_path: Path
) -> None:
    board = write_leaderboard(chosen, tmp_path / "results", choose=True, root=pictures)
    assert [(cell["method"], cell["sampling"]) for cell in board["cells"]] == [
        (method, sampling) for sampling in ("balanced", "dirichlet(2)") for method in ("protonet", "simpleshot")
    ]
    images = Runner(RECIPES["folder-conv4"], tmp_path, root=pictures).images("test")
    features = by_class(embed(tiny_model().network, images.images, size=32), images)
    cell = board["cells"][2]
    setting = cell["chosen"]["setting"]
    assert setting in settings_of("protonet")
    found = evaluate(
        create_method("protonet", temperature=setting["temperature"]), features, episodes=20, sampling="dirichlet"
    )
    assert (cell["mean"], cell["ci95"]) == (pytest.approx(found.mean, abs=1e-4), pytest.approx(found.ci95, abs=1e-4))
    assert cell["ece"] == pytest.approx(found.calibration_error, abs=1e-3)
    assert cell["episodes_per_second"] > 0
    assert json.loads((tmp_path / "results" / "leaderboard" / "leaderboard.json").read_text()) == board


def test_page_and_picture_are_made_from_the_json_alone(chosen: Selection, pictures: Path, tmp_path: Path) -> None:
    write_leaderboard(chosen, tmp_path / "results", choose=True, root=pictures)
    board = json.loads((tmp_path / "results" / "leaderboard" / "leaderboard.json").read_text())
    write_report(board, tmp_path / "again")
    for name in ("leaderboard.md", "leaderboard/speed.png"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "results" / name).read_bytes()
    page = (tmp_path / "again" / "leaderboard.md").read_text()
    best = max(board["cells"][:2], key=lambda cell: cell["mean"])
    assert f"**{best['mean']:.2f} ± {best['ci95']:.2f}**" in page
    assert "20 test episodes for each figure" in page


def test_a_terminal_of_80_characters_shows_every_word_of_every_table() -> None:
    board = json.loads((ROOT / "results" / "leaderboard" / "leaderboard.json").read_text(encoding="utf-8"))
    written = StringIO()
    Console(file=written, width=80).print(*terminal_tables(board))
    shown = written.getvalue()
    assert "…" not in shown
    for word in ("balanced", "dirichlet", "episodes/s", "transductive-finetuning"):
        assert word in shown
    assert max(map(len, shown.splitlines())) == 80


def test_the_command_shows_the_tables_it_was_asked_for_and_no_others(
    chosen: Selection,
    pictures: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe = replace(RECIPES["folder-conv4"], name="folder-resnet18", backbone="resnet18")
    monkeypatch.setitem(RECIPES, recipe.name, recipe)
    tiny_model(seed=2).save(tmp_path / "weights" / "folder-resnet18-1shot-baseline.safetensors")
    results = tmp_path / "results"
    write_leaderboard(replace(chosen, backbones=("conv4", "resnet18")), results, choose=True, root=pictures)
    leaderboard(
        ("protonet", "simpleshot"),
        datasets=("folder",),
        backbones=("conv4",),
        networks=("baseline",),
        shots=(1,),
        episodes=20,
        weights=chosen.folder,
        root=pictures,
        results=results,
    )
    assert capsys.readouterr().out.count("trained as ProtoNet") == 1
    assert (results / "leaderboard.md").read_text().count("\n## folder, ") == 2


def test_the_committed_page_is_what_its_json_gives(tmp_path: Path) -> None:
    for path in (ROOT / "results" / "leaderboard").glob("leaderboard.json"):
        write_report(json.loads(path.read_text(encoding="utf-8")), tmp_path)
        assert (tmp_path / "leaderboard.md").read_text() == (ROOT / "results" / "leaderboard.md").read_text()


def test_choosing_reads_no_test_image(chosen: Selection, pictures: Path, tmp_path: Path) -> None:
    tune(chosen, tmp_path / "settings.json", root=pictures)
    from team.training.checkpoint import load_checkpoint

    names = [load_checkpoint(path)[1]["name"] for path in (tmp_path / "cache" / "features").iterdir()]
    assert sorted(name.split()[1] for name in names) == ["train", "val"]
    assert set(read_settings(tmp_path / "settings.json")) == {
        f"folder-conv4-1shot-baseline, {name}" for name in ("balanced", "dirichlet(2)")
    }


def test_the_best_setting_wins_and_calibration_decides_between_equals(
    chosen: Selection, pictures: Path, tmp_path: Path
) -> None:
    settings = tune(chosen, tmp_path / "settings.json", root=pictures)
    found = settings["folder-conv4-1shot-baseline, balanced"]["protonet"]
    images = Runner(RECIPES["folder-conv4"], tmp_path, root=pictures).images("val")
    features = by_class(embed(tiny_model().network, images.images, size=32), images)
    tried = {}
    for setting in settings_of("protonet"):  # whose temperature changes nothing but calibration
        method = create_method("protonet", temperature=setting["temperature"])
        tried[setting["temperature"]] = evaluate(method, features, episodes=4, seed=1)
    assert len({result.mean for result in tried.values()}) == 1
    assert found["setting"]["temperature"] == min(tried, key=lambda value: tried[value].calibration_error)
    assert found["tried"] == len(tried)


def test_an_interrupted_run_goes_on_and_finished_cells_are_not_run_again(
    chosen: Selection, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tune(chosen, tmp_path / "settings.json", root=pictures)
    calls: list[str] = []
    measure = bench.Bench._measure

    def counted(self: Any, name: str, *rest: Any) -> Any:
        calls.append(name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return measure(self, name, *rest)

    monkeypatch.setattr(bench.Bench, "_measure", counted)
    with pytest.raises(KeyboardInterrupt):
        run(chosen, settings, root=pictures)
    board = run(chosen, settings, root=pictures)
    assert len(calls) == 5, "two, the interrupted one again, and the last"
    assert run(chosen, settings, root=pictures) == board
    assert len(calls) == 5


def test_other_weights_settings_and_code_are_not_answered_from_what_is_kept(
    chosen: Selection, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tune(chosen, tmp_path / "settings.json", root=pictures)
    kept = tmp_path / "cache" / "leaderboard"

    def cells() -> int:
        run(chosen, settings, root=pictures)
        return len(list(kept.glob("cell-*.json")))

    assert [cells(), cells()] == [4, 4]
    settings["folder-conv4-1shot-baseline, balanced"]["simpleshot"]["setting"] = {"temperature": 0.7}
    assert cells() == 5
    tiny_model(seed=1).save(tmp_path / "weights" / "folder-conv4-1shot-baseline.safetensors")
    with pytest.raises(ValueError, match="was chosen for other weights; run with --tune"):
        cells()
    settings = tune(chosen, tmp_path / "settings.json", root=pictures)
    assert cells() == 9
    monkeypatch.setattr(bench, "source_checksum", lambda module: module)
    assert cells() == 13
    for path in kept.glob("cell-*.json"):
        path.write_text(path.read_text()[:-20])  # cut short
    assert cells() == 13


def test_a_method_with_its_own_weights_runs_with_these_or_is_said_not_to_be_run(
    chosen: Selection, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "TRAINED", ("masked-soft-kmeans",))
    mixed = selection_of(methods=("protonet", "masked-soft-kmeans"), folder=chosen.folder, shots=(1, 5))
    tiny_model("masked-soft-kmeans", seed=3).save(
        tmp_path / "weights" / "folder-conv4-1shot-masked-soft-kmeans.safetensors"
    )
    board = write_leaderboard(mixed, tmp_path / "results", choose=True, root=pictures)
    own = [cell for cell in board["cells"] if cell["network"] == "own"]
    assert [cell["method"] for cell in own] == ["masked-soft-kmeans"] * 2
    assert own[0]["chosen"] is None
    missing = {(entry["weights"], *entry["methods"]) for entry in board["not_run"]}
    assert missing == {("folder-conv4-5shot-masked-soft-kmeans", "masked-soft-kmeans")}
    page = (tmp_path / "results" / "leaderboard.md").read_text()
    assert "| masked-soft-kmeans † |" in page
    assert "- Not run, there are no such weights: masked-soft-kmeans for folder-conv4-5shot.\n" in page
    tiny_model("soft-kmeans").save(tmp_path / "weights" / "folder-conv4-1shot-masked-soft-kmeans.safetensors")
    with pytest.raises(ValueError, match="was trained for soft-kmeans, not for masked-soft-kmeans"):
        write_leaderboard(mixed, tmp_path / "results", root=pictures)


def test_what_a_gpu_measured_counts_on_a_cpu_where_a_network_is_fitted_and_is_said_to(
    chosen: Selection, pictures: Path, tmp_path: Path
) -> None:
    mixed = selection_of(methods=("protonet", "maml"), folder=chosen.folder, slow_episodes=2, samplings=(BALANCED,))
    tiny_model("maml", test_steps=1).save(tmp_path / "weights" / "folder-conv4-1shot-maml.safetensors")
    write_leaderboard(mixed, tmp_path / "results", choose=True, root=pictures)
    kept = {}
    for path in (tmp_path / "cache" / "leaderboard").glob("cell-*.json"):
        content = json.loads(path.read_text())
        kept[content["key"]["method"]] = "device" in content["key"]
        if content["key"]["method"] == "maml":
            content["outcome"]["hardware"] = "a GPU"
            path.write_text(json.dumps(content))
    assert kept == {"protonet": True, "maml": False}
    board = write_leaderboard(mixed, tmp_path / "results", root=pictures)
    assert {cell["method"]: cell["hardware"] for cell in board["cells"]}["maml"] == "a GPU"
    page = (tmp_path / "results" / "leaderboard.md").read_text()
    assert "- Measured on a GPU: maml." in page
    marked = [line.split()[1] for line in page.splitlines() if line.endswith(" ‡ |")]
    assert marked == ["maml"], "a speed on other hardware is marked"


def test_a_run_replaces_the_tables_it_asks_for_and_keeps_the_others(
    chosen: Selection, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results"
    before = write_leaderboard(chosen, results, choose=True, root=pictures)
    recipe = replace(RECIPES["folder-conv4"], name="folder-resnet18", backbone="resnet18")
    monkeypatch.setitem(RECIPES, recipe.name, recipe)
    tiny_model(seed=2).save(tmp_path / "weights" / "folder-resnet18-1shot-baseline.safetensors")
    other = selection_of(methods=("simpleshot",), backbones=("resnet18",), folder=chosen.folder)
    both = write_leaderboard(other, results, choose=True, root=pictures)
    count = len(before["cells"])
    assert both["cells"][:count] == before["cells"], "tables stand in the order of the recipes, whichever ran last"
    assert [cell["recipe"] for cell in both["cells"][count:]] == ["folder-resnet18"] * 2
    again = write_leaderboard(chosen, results, root=pictures)
    assert again["cells"] == both["cells"]
    assert (results / "leaderboard.md").read_text().count("\n## folder, ") == 2
    (tmp_path / "weights" / "folder-resnet18-1shot-baseline.safetensors").unlink()
    gone = write_leaderboard(replace(chosen, backbones=("conv4", "resnet18")), results, root=pictures)
    assert gone["cells"] == both["cells"], "what was measured stays, though its weights are no longer there"
    assert [one["methods"] for one in gone["not_run"]] == [["protonet"]]
    other = replace(other, backbones=("conv4",))
    elsewhere = write_leaderboard(replace(other, seed=1), results, choose=True, root=pictures)
    assert {cell["recipe"] for cell in elsewhere["cells"]} == {"folder-conv4"}, "of another seed: other episodes"
    (results / "leaderboard" / "leaderboard.json").write_text("cut sho")
    with pytest.raises(ValueError, match="is no leaderboard; remove it and run again"):
        write_leaderboard(other, results, root=pictures)


def test_a_method_joins_a_table_whose_reference_is_as_it_was(chosen: Selection, pictures: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    path = results / "leaderboard" / "leaderboard.json"
    before = write_leaderboard(replace(chosen, methods=("team+", "protonet")), results, choose=True, root=pictures)
    for cell in before["cells"]:
        cell["episodes_per_second"] = 7.0
    path.write_text(json.dumps(before))
    joined = write_leaderboard(replace(chosen, methods=("team+", "simpleshot")), results, choose=True, root=pictures)
    assert Counter(cell["method"] for cell in joined["cells"]) == {"team+": 2, "protonet": 2, "simpleshot": 2}
    kept = [cell for cell in joined["cells"] if cell["method"] != "simpleshot"]
    assert sorted(kept, key=before["cells"].index) == before["cells"], "team+ too: it was timed beside protonet"
    for cell in joined["cells"]:
        cell["commit"] = "another" if cell["method"] == "protonet" else "one"
        if cell["method"] == "team+" and cell["sampling"] == "balanced":
            cell["mean"] += 0.5
    path.write_text(json.dumps(joined))
    write_report(joined, results)
    page = (results / "leaderboard.md").read_text()
    assert "- Commit another: folder, ConvNet trained as ProtoNet (protonet)." in page
    assert "- Commit one: folder, ConvNet trained as ProtoNet." in page
    again = write_leaderboard(replace(chosen, methods=("team+", "simpleshot")), results, root=pictures)
    left = [cell["sampling"] for cell in again["cells"] if cell["method"] == "protonet"]
    assert left == ["dirichlet(2)"], "what was compared with another figure of team+ goes"
    whole = write_leaderboard(replace(chosen, methods=("team+", "protonet", "simpleshot")), results, root=pictures)
    assert 7.0 not in [cell["episodes_per_second"] for cell in whole["cells"]], "all of one table: all of this run"


def test_weights_trained_with_another_number_of_shots_do_where_there_are_no_others(
    chosen: Selection, pictures: Path, tmp_path: Path
) -> None:
    folder = chosen.folder
    assert folder is not None
    (folder / "folder-conv4-1shot-baseline.safetensors").rename(folder / "folder-conv4-4shot-baseline.safetensors")
    both = replace(chosen, shots=(1, 5), methods=("simpleshot",))
    board = write_leaderboard(both, tmp_path / "results", choose=True, root=pictures)
    assert [cell["shots"] for cell in board["cells"]] == [1, 1, 5, 5]
    assert {cell["weights"] for cell in board["cells"]} == {"folder-conv4-4shot-baseline"}
    settings = read_settings(tmp_path / "results" / "leaderboard" / "settings.json")
    assert len(settings) == 4, "each number of shots has settings of its own"
    page = (tmp_path / "results" / "leaderboard.md").read_text()
    assert "- folder, ConvNet trained as ProtoNet, 1-shot: features of folder-conv4-4shot-baseline." in page
    tiny_model(seed=2).save(folder / "folder-conv4-7shot-baseline.safetensors")
    near = {weights.shots: weights.name for weights in replace(both, shots=(1, 7, 8)).weights()}
    assert near == {1: "folder-conv4-4shot-baseline"} | dict.fromkeys((7, 8), "folder-conv4-7shot-baseline")
    own = replace(both, methods=("maml",), shots=(5,))
    tiny_model(seed=2).save(folder / "folder-conv4-1shot-maml.safetensors")
    assert [weights.path for weights in own.weights()] == [None], "what brings its own network is as it was trained"


def test_the_precision_of_features_is_said_and_figures_in_another_are_not_taken(
    chosen: Selection, pictures: Path, tmp_path: Path
) -> None:
    few = replace(chosen, methods=("simpleshot",), samplings=(BALANCED,))
    first, second = (
        write_leaderboard(replace(few, precision=precision), tmp_path / str(precision), choose=True, root=pictures)
        for precision in (None, "bfloat16")
    )
    assert [board["cells"][0]["precision"] for board in (first, second)] == ["float32", "bfloat16"]
    assert len(list((tmp_path / "cache" / "leaderboard").glob("cell-*"))) == 2
    assert len(list((tmp_path / "cache" / "leaderboard").glob("tuning-*"))) == 2
    said = "- folder, ConvNet trained as ProtoNet: features computed in bfloat16."
    pages = [(tmp_path / str(name) / "leaderboard.md").read_text() for name in (None, "bfloat16")]
    assert [said in page for page in pages] == [False, True]


def test_a_data_set_may_have_no_recipe_for_a_backbone() -> None:
    chosen = Selection(datasets=("miniimagenet", "cub"), backbones=("conv4", "resnet18-mean"))
    assert chosen.recipes() == ["miniimagenet-conv4", "miniimagenet-resnet18-mean", "cub-conv4"]
    with pytest.raises(ValueError, match="there is no recipe cub-resnet18-mean"):
        Selection(datasets=("cub",), backbones=("conv4", "resnet18-mean"))


def test_what_has_no_settings_or_no_weights_is_named_before_work(chosen: Selection, pictures: Path) -> None:
    with pytest.raises(
        ValueError, match=r"no setting was chosen for protonet \(folder-.*, balanced\); run once with --t"
    ):
        run(chosen, {}, root=pictures)
    with pytest.raises(ValueError, match="there are no weights for anything that was chosen"):
        run(selection_of(), {}, root=pictures)
    with pytest.raises(ValueError, match="there is no recipe mnist-conv4"):
        Selection(datasets=("mnist",))
    with pytest.raises(ValueError, match="episodes must be 2 or more, not 1"):
        Selection(episodes=1)


# --- pairing ----------------------------------------------------------------------------------------------------------


def cell(method: str, right: list[int], network: str = "team") -> dict[str, Any]:
    place = {"recipe": "cub-conv4", "shots": 1, "sampling": "balanced", "weights": network}
    return place | {"method": method, "network": network, "right": right, "mean": sum(right) / len(right) / 0.75}


def test_differences_are_to_team_plus_if_it_was_run_and_else_to_the_best() -> None:
    cells = [cell("protonet", [30, 50]), cell("tim", [60, 60]), cell("protonet", [75, 75], "baseline")]
    add_comparisons(cells)
    assert cells[0]["paired"]["to"] == "tim"
    assert cells[0]["paired"]["difference"] == pytest.approx(-20 / 0.75, abs=1e-3)
    assert (cells[1]["paired"], cells[2]["paired"]) == (None, None)
    cells += [cell("team+", [45, 45])]
    add_comparisons(cells)
    assert [entry["paired"] and entry["paired"]["to"] for entry in cells] == ["team+", "team+", None, None]
    assert cells[1]["paired"]["wins"] == 2


def test_runs_of_other_lengths_are_paired_over_whole_blocks_of_episodes() -> None:
    cells = [cell("team+", [40, 50] * 500), cell("maml", [39, 49] * 150, "own"), cell("reptile", [39] * 200, "own")]
    add_comparisons(cells)
    assert (cells[1]["paired"]["episodes"], cells[1]["paired"]["losses"]) == (256, 256)
    assert cells[2]["paired"] is None, "less than one block: none of its episodes need be the other's"


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in list_methods() if name not in TRAINED])
def test_every_setting_is_one_the_method_takes(name: str) -> None:
    settings = settings_of(name)
    assert len(settings) == len({repr(setting) for setting in settings}) <= 20
    for setting in settings:
        build(name, setting, torch.zeros(4))


def test_settings_are_for_methods_there_are() -> None:
    assert set(GRIDS) <= set(list_methods())


def test_prepared_features_are_centred_and_of_length_one() -> None:
    random = torch.Generator().manual_seed(0)
    support, query, mean = (torch.randn(*shape, generator=random) for shape in ((6, 4), (9, 4), (4,)))
    labels = torch.arange(6) % 3
    expected = create_method("simpleshot", base_mean=mean)(support, labels, query)
    found = Prepared(create_method("protonet"), mean)
    torch.testing.assert_close(found(support, labels, query), expected)
    torch.testing.assert_close(build("protonet", {"prepare": "centred"}, mean)(support, labels, query), expected)
    assert (found.transductive, Prepared(create_method("team"), None).transductive) == (False, True)
    half = build("protonet", {"prepare": "unit"}, mean)(support.half(), labels, query.half())
    assert half.dtype == torch.float32


def test_a_sampling_says_what_it_is() -> None:
    shown = [str(one) for one in (BALANCED, DIRICHLET, Sampling("dirichlet", 0.5, 3), Sampling("uniform", present=2))]
    assert shown == ["balanced", "dirichlet(2)", "dirichlet(0.5) of 3 classes", "uniform of 2 classes"]
