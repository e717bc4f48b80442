"""Claims about bad days: a full disk, a folder that cannot be written, files that vanish. One line, and work is kept.

Every command runs as a process of its own, on a recipe small enough for it; what fails is the real operating system.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import tiny_images
from PIL import Image

from team.training.checkpoint import load_checkpoint

CELL = "tiny-conv4-1shot-team"
UNWRITABLE = "/sys/team"  # not even root can make a folder there

# ACT runs in a thread once PATH exists: the moment after the first checkpoint, or right away.
PROGRAM = """
import os, resource, shutil, sys, threading, time
from dataclasses import replace
from pathlib import Path
import torch
from team.cli import main
from team.recipes import RECIPES, conv4

torch.set_num_threads(1)
episodic = replace(conv4.CUB.episodic, episodes=30, per_step=1, validate_every=3, validation_episodes=2)
RECIPES["tiny-conv4"] = replace(
    conv4.CUB, name="tiny-conv4", dataset="folder", split="0.4-0.3-0.3@0", size=32, pretrain=None,
    episodic=episodic, choice_episodes=2,
)
act, path = os.environ.get("ACT", ""), Path(os.environ.get("AFTER", "."))

def watch():
    while not path.exists():
        time.sleep(0.001)
    exec(act)

if act:
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    if path == Path("."):
        thread.join()
main()
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen classes of eighteen images, as a folder of one's own."""
    folder = tmp_path_factory.mktemp("adversity") / "pictures"
    images = tiny_images(16, 18)
    for number, (pixels, label) in enumerate(zip(images.images, images.labels, strict=True)):
        path = folder / f"class{int(label):02d}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(path)
    return folder


@pytest.fixture
def place(tmp_path: Path, pictures: Path) -> Path:
    shutil.copytree(pictures, tmp_path / "pictures")
    return tmp_path


def team(place: Path, *words: str, act: str = "", after: str = ".") -> subprocess.CompletedProcess[str]:
    """The command in this folder, with its cache there; ``act`` is done as soon as the file ``after`` exists."""
    tests = Path(__file__).parent
    path = os.pathsep.join([str(tests.parent / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"TEAM_CACHE": str(place / "cache"), "PYTHONPATH": path, "ACT": act, "AFTER": after}
    command = [sys.executable, "-c", PROGRAM, *words]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=300)


def assert_one_line(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("team: ")
    for part in parts:
        assert part in done.stderr


TRAIN = ("train", CELL, "--root", "pictures", "--device", "cpu")
PREPARE = ("data", "prepare", "folder", "--root", "pictures", "--split", "0.4-0.3-0.3@0", "--size", "32")
FULL = "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"  # no file can grow beyond: writing fails half way
LAST = f"runs/{CELL}/last.safetensors"


def test_a_full_disk_and_vanished_data_end_training_with_a_line_and_it_goes_on_afterwards(
    place: Path, pictures: Path
) -> None:
    vanish = "shutil.rmtree('pictures'); shutil.rmtree('cache')"
    done = team(place, *TRAIN, act=f"{vanish}; {FULL}", after=LAST)
    assert_one_line(done, f"runs/{CELL}", "cannot be written (File too large)", "make room")
    assert 3 <= load_checkpoint(place / LAST)[1]["outcome"]["step"] < 30
    assert not list(place.rglob("*.tmp")), "nothing half-written is left"

    assert_one_line(team(place, *TRAIN), "is not prepared", "team data prepare folder")
    shutil.copytree(pictures, place / "pictures")
    done = team(place, *TRAIN)
    assert done.returncode == 0, done.stderr
    assert load_checkpoint(place / LAST)[1]["outcome"]["step"] == 30

    model = f"runs/{CELL}/model.safetensors"
    evaluate = ("evaluate", model, "--root", "pictures", "--episodes", "5", "--device", "cpu", "--shots", "2")
    assert_one_line(team(place, *evaluate, "--results", UNWRITABLE), UNWRITABLE, "cannot be written")
    assert team(place, *evaluate, "--results", "results").returncode == 0
    facts = json.loads((place / "results" / f"{CELL}-at-2shot.json").read_text())
    assert (facts["cell"], facts["shots"], facts["settings"]["training"]["shots"]) == (f"{CELL}-at-2shot", 2, 1)
    assert not (place / "results" / "tiny-conv4-2shot-team.json").exists(), "that would be another cell's"


def test_a_full_disk_ends_preparation_with_a_line_and_leaves_no_half_of_it(place: Path) -> None:
    before = sorted((place / "pictures").rglob("*"))
    assert_one_line(team(place, *PREPARE, act=FULL), "cache/data", "cannot be written (File too large)", "make room")
    assert not [path for path in (place / "cache").rglob("*") if path.is_file()]
    assert team(place, *PREPARE).returncode == 0
    assert sorted((place / "pictures").rglob("*")) == before, "the folder of data is only read from"
    shutil.rmtree(place / "pictures")
    shard = next((place / "cache").rglob("train-*.safetensors"))
    shard.unlink()
    assert_one_line(team(place, *TRAIN), shard.name, "cannot be read", "make it anew: team data prepare folder")


def test_a_folder_that_cannot_be_written_is_named(place: Path) -> None:
    assert_one_line(team(place, *TRAIN, "--runs", UNWRITABLE), UNWRITABLE, "cannot be written")


def test_a_picture_that_vanishes_during_preparation_is_named(place: Path) -> None:
    picture = next((place / "pictures").rglob("*.png"))
    picture.unlink()
    picture.symlink_to("nowhere")
    assert_one_line(team(place, *PREPARE), picture.name)
