"""Claims about going on: a run stopped anywhere, even killed while writing, ends with the bits of one never stopped."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import tiny_episodic, tiny_images, tiny_model, tiny_pretraining
from torch import Tensor

from team.training.checkpoint import CheckpointError, load_checkpoint
from team.training.episodic import EpisodicTraining
from team.training.loop import Objective, train
from team.training.pretrain import Pretraining

STEPS = 24


def pretraining() -> Objective:
    settings = tiny_pretraining(epochs=12, batch=32, validations=4, average=0.9)
    return Pretraining(tiny_model(seed=1), tiny_images(8, 8), tiny_images(4, 16, seed=1), settings)


def episodic() -> Objective:
    """All that carries something from step to step: an average, a temperature, prototypes, several episodes a step."""
    settings = tiny_episodic(episodes=2 * STEPS, per_step=2, validate_every=12, seen_prototypes=True, average=0.9)
    return EpisodicTraining(tiny_model(learn_temperature=True), tiny_images(), tiny_images(4, seed=1), settings)


OBJECTIVES = {"pretraining": pretraining, "episodic": episodic}
every_objective = pytest.mark.parametrize("name", OBJECTIVES)


def tensors(folder: Path, name: str) -> dict[str, Tensor]:
    return load_checkpoint(folder / f"{name}.safetensors")[0]


def assert_same_bits(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert tensor.dtype == second[name].dtype
        assert torch.equal(tensor, second[name]), name


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {}
    for name, make in OBJECTIVES.items():
        folders[name] = tmp_path_factory.mktemp(name)
        outcome = train(make(), folders[name], show=False)
        assert outcome.step == STEPS
    return folders


@every_objective
def test_the_same_run_twice_gives_the_same_bits(uninterrupted: dict[str, Path], tmp_path: Path, name: str) -> None:
    train(OBJECTIVES[name](), tmp_path, show=False, checkpoint_seconds=0)
    assert_same_bits(tensors(tmp_path, "last"), tensors(uninterrupted[name], "last"))
    assert_same_bits(tensors(tmp_path, "best"), tensors(uninterrupted[name], "best"))
    assert (tmp_path / "metrics.jsonl").read_bytes() == (uninterrupted[name] / "metrics.jsonl").read_bytes()


@every_objective
def test_a_run_stopped_by_its_time_limit_again_and_again_ends_with_the_same_bits(
    uninterrupted: dict[str, Path], tmp_path: Path, name: str
) -> None:
    starts, limits = 0, [0.0, 0.05, 0.0, 0.1]
    while train(OBJECTIVES[name](), tmp_path, show=False, time_limit=([*limits, None][min(starts, 4)])).step < STEPS:
        starts += 1
    assert starts >= 2
    assert_same_bits(tensors(tmp_path, "last"), tensors(uninterrupted[name], "last"))


class Stop(Exception):
    pass


@every_objective
def test_a_run_that_fails_between_validations_goes_on_from_its_latest_step(
    uninterrupted: dict[str, Path], tmp_path: Path, name: str
) -> None:
    drawn: list[int] = []

    def interrupted_at(step: int | None) -> Objective:
        objective = OBJECTIVES[name]()
        draw = objective.draw

        def stop(number: int) -> dict[str, Tensor]:
            if number == step:
                raise Stop
            drawn.append(number)
            return draw(number)

        objective.draw = stop  # type: ignore[method-assign]
        return objective

    for step in (1, 7, 8, 20):
        with pytest.raises(Stop):
            train(interrupted_at(step), tmp_path, show=False, checkpoint_seconds=0)
    train(interrupted_at(None), tmp_path, show=False, checkpoint_seconds=0)
    assert drawn == list(range(STEPS)), "no step is taken twice, none left out"
    assert_same_bits(tensors(tmp_path, "last"), tensors(uninterrupted[name], "last"))
    assert_same_bits(tensors(tmp_path, "best"), tensors(uninterrupted[name], "best"))
    assert (tmp_path / "metrics.jsonl").read_bytes() == (uninterrupted[name] / "metrics.jsonl").read_bytes()


def test_rows_written_after_the_latest_checkpoint_are_written_again(
    uninterrupted: dict[str, Path], tmp_path: Path
) -> None:
    expected = (uninterrupted["episodic"] / "metrics.jsonl").read_text()
    train(episodic(), tmp_path, show=False, time_limit=0)
    metrics = tmp_path / "metrics.jsonl"
    first = metrics.read_text()
    lines = expected.splitlines(keepends=True)
    metrics.write_text(first + lines[0] + lines[1][:20])  # a row ahead of the state, and half of another
    train(episodic(), tmp_path, show=False)
    written = metrics.read_text().splitlines(keepends=True)
    assert [json.loads(line)["step"] for line in written] == [1, *(json.loads(line)["step"] for line in lines)]
    assert metrics.read_text().startswith(first), "and the rows before it stay"


def test_a_damaged_state_is_named_and_nothing_is_overwritten(tmp_path: Path) -> None:
    train(episodic(), tmp_path, show=False, time_limit=0)
    last = tmp_path / "last.safetensors"
    damaged = last.read_bytes()[:-5]
    last.write_bytes(damaged)
    with pytest.raises(CheckpointError, match=r"last\.safetensors is truncated or damaged"):
        train(episodic(), tmp_path, show=False)
    assert last.read_bytes() == damaged


# --- kill -9 ----------------------------------------------------------------------------------------------------------


def test_a_run_killed_at_any_moment_ends_with_the_same_bits(uninterrupted: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(__file__).parent
    path = os.pathsep.join([str(folder), str(folder.parent / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, str(tmp_path)]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    for name, facts in json.loads(done.stdout).items():
        assert facts["kills"] >= 5, facts
        assert len(set(facts["steps"])) >= 3, f"killed at different steps: {facts}"
        killed, whole = tmp_path / name, uninterrupted[name]
        assert_same_bits(tensors(killed, "last"), tensors(whole, "last"))
        assert_same_bits(tensors(killed, "best"), tensors(whole, "best"))
        assert (killed / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()


def _start(name: str, folder: Path) -> int:
    """Train in a process of its own, with a checkpoint after every step; the process's number."""
    if process := os.fork():
        return process
    code = 1
    try:
        train(OBJECTIVES[name](), folder, show=False, checkpoint_seconds=0)
        code = 0
    finally:
        os._exit(code)


def _kill_until_done(name: str, folder: Path, chance: random.Random) -> dict[str, Any]:
    """Kill a run some time after a few of its checkpoints, start it again, many times over, and then let it finish."""
    folder.mkdir()
    (folder / ".last.safetensors.left.tmp").write_bytes(b"half of a state")
    last, steps, pace = folder / "last.safetensors", [], 0.02

    def written() -> int:
        return last.stat().st_mtime_ns if last.exists() else 0

    for _ in range(7):
        process, started, awaited = _start(name, folder), time.monotonic(), chance.randint(1, 3)
        for _ in range(awaited):
            before = written()
            while written() == before and time.monotonic() - started < 20:
                time.sleep(0.0005)
        pace = min(pace, (time.monotonic() - started) / awaited)
        time.sleep(pace * chance.random())
        os.kill(process, signal.SIGKILL)
        if os.WIFEXITED(os.waitpid(process, 0)[1]):
            break
        steps.append(load_checkpoint(last)[1]["outcome"]["step"])
    assert os.waitpid(_start(name, folder), 0)[1] == 0
    return {"kills": len(steps), "steps": steps, "left": len(list(folder.glob(".*.tmp")))}


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, make in OBJECTIVES.items():  # what is imported late or set up once need not be so in every process
        train(make(), Path(sys.argv[1], "warm", name), show=False, time_limit=0)
    chance = random.Random(0)
    print(json.dumps({name: _kill_until_done(name, Path(sys.argv[1]) / name, chance) for name in OBJECTIVES}))
