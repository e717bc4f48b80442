"""The demo runs from end to end, its report stands alone, and a call after an interruption goes on."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from PIL import Image

from team.demo import DemoResult, run_demo
from team.report import (
    EpisodePictures,
    FeatureView,
    Section,
    draw_curves,
    draw_episode,
    draw_features,
    draw_metric,
    html_table,
    write_page,
)

PICTURES = ("episode.png", "metric.png", "features.png", "training.png")
NASTY = '<script>alert("1 & 2")</script> $x_1$'


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    base = tmp_path_factory.mktemp("demo")
    return run_demo(base / "report", quick=True, show=False, cache=base / "cache")


class _Links(HTMLParser):
    """Collects all that a browser might load, and the text a person reads."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_table_has_the_four_rows_at_both_shots(demo: DemoResult) -> None:
    table = demo.table()
    assert [row["name"] for row in table] == ["baseline", "+ TIM", "+ EAM", "TEAM"]
    for row in table:
        for shots in ("1-shot", "5-shot"):
            assert 0 <= row[shots]["mean"] <= 100
            assert row[shots]["ci95"] > 0


def test_results_and_pictures_are_written(demo: DemoResult) -> None:
    about = json.loads((demo.folder / "demo.json").read_text(encoding="utf-8"))
    assert about["table"] == demo.table()
    assert about["data"]["test"]["checksum"] == demo.data["test"].checksum
    for name in PICTURES:
        with Image.open(demo.folder / name) as picture:
            assert picture.format == "PNG"
            assert min(picture.size) > 300


def test_all_rows_and_both_methods_saw_the_same_episodes(demo: DemoResult) -> None:
    assert len({row.test[1].seed for row in demo.rows}) == 1
    begun = {row.model.info["pretraining"]["validation_accuracy"] for row in demo.rows}
    assert len(begun) == 1


def test_no_test_class_is_a_training_or_validation_class(demo: DemoResult) -> None:
    scripts = {part: {name.split(":")[0] for name in images.classes} for part, images in demo.data.items()}
    assert not scripts["test"] & (scripts["train"] | scripts["val"])


def test_the_page_loads_nothing_from_outside(demo: DemoResult) -> None:
    page = demo.page.read_text(encoding="utf-8")
    links = _Links(page)
    assert len(links.links) == len(PICTURES)
    assert all(link.startswith("data:image/png;base64,") for link in links.links)
    assert "script" not in links.tags
    assert "link" not in links.tags
    assert not re.search(r"https?:|@import|url\(", page)
    assert "prefers-color-scheme: dark" in page
    for row in demo.rows:
        assert f"{row.test[1].mean:.2f} ±\N{NO-BREAK SPACE}{row.test[1].ci95:.2f}" in links.text
    assert demo.data["train"].checksum in links.text


def test_an_interrupted_demo_goes_on_and_ends_the_same(demo: DemoResult, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(demo.folder / "team")  # as if it had been stopped before the last row
    demo.page.unlink()
    finished = sorted(demo.folder.glob("*/best.safetensors"))
    assert len(finished) == 4
    before = [path.stat().st_mtime_ns for path in finished]
    again = run_demo(demo.folder, quick=True, show=True, cache=demo.folder.parent / "cache")
    assert [path.stat().st_mtime_ns for path in finished] == before
    assert again.table() == demo.table()
    assert demo.page.is_file()
    shown = capsys.readouterr().out
    assert "training TEAM: 20/20" in shown
    assert "training baseline" not in shown
    assert str(demo.page) in shown


def test_all_text_on_a_page_is_escaped(tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    Image.new("RGB", (4, 4)).save(picture)
    table = html_table([NASTY, "n"], [[NASTY, "1"]], numbers=1)
    write_page(tmp_path / "page.html", NASTY, NASTY, [Section(NASTY, [NASTY], (picture, NASTY), table)])
    links = _Links((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "script" not in links.tags
    assert links.text.count(NASTY) == 7  # title twice, headline, section, paragraph, two cells


def test_pictures_take_any_shots_sizes_and_names(tmp_path: Path) -> None:
    random = torch.Generator().manual_seed(0)
    labels, answers = torch.tensor([0, 0, 0, 1, 2]), torch.arange(3).repeat_interleave(9)
    images = torch.randint(0, 256, (32, 3, 20, 24), dtype=torch.uint8, generator=random)
    classes = [NASTY, "_hidden", "a name much too long to stand beside a picture"]
    episode = EpisodePictures(images[:5], labels, images[5:], answers, classes)
    draw_episode(tmp_path / "episode.png", episode, {"all one": torch.zeros(27).long(), "right": answers}, columns=7)
    query, prototypes = torch.randn(27, 6, generator=random), torch.randn(3, 6, generator=random)
    draw_features(tmp_path / "features.png", [FeatureView("one", query, prototypes)], answers, classes)
    draw_metric(tmp_path / "metric.png", torch.eye(6))
    draw_curves(tmp_path / "training.png", {NASTY: [{"seen": 1, "loss": 2.0, "validation": 3.0}]})
    for name in PICTURES:
        with Image.open(tmp_path / name) as picture:
            picture.load()
