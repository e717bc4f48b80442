"""Two processes, each with half of every step, give what one process gives."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from team.training.checkpoint import load_checkpoint, without_prefix
from team.training.distributed import World

SCRIPT = """
import sys
from pathlib import Path

import torch

from team.data.augment import Augmentation
from team.data.images import ImageSet
from team.model import Model
from team.training.distributed import start
from team.training.episodic import EpisodicTraining
from team.training.loop import train
from team.training.pretrain import Pretraining
from team.training.settings import EpisodicSettings, PretrainSettings

torch.set_num_threads(1)
world, _ = start("cpu")
random = torch.Generator().manual_seed(0)
labels = torch.arange(8).repeat_interleave(20)
pictures = 2 * labels[:, None, None, None] + torch.randint(0, 240, (160, 3, 32, 32), generator=random)
images = ImageSet(pictures.byte(), labels, tuple("abcdefgh"), "synthetic", "synthetic")
torch.manual_seed(0)
options = {"learn_temperature": True}
model = Model.create("conv4", "team", 32, backbone_options={"filters": 8}, method_options=options)
before = PretrainSettings(epochs=1, batch=32, learning_rate=0.05, validations=1, validation_episodes=5)
train(Pretraining(model, images, images, before), Path(sys.argv[1]) / "before", show=False, world=world)
settings = EpisodicSettings(
    episodes=16, per_step=4, queries=5, validate_every=8, validation_episodes=5, seen_prototypes=True
)
train(EpisodicTraining(model, images, images, settings), Path(sys.argv[1]) / "after", show=False, world=world)
world.leave()
"""


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run(folder: Path, processes: int) -> None:
    script = folder / "script.py"
    folder.mkdir()
    script.write_text(SCRIPT)
    common = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_port()), "WORLD_SIZE": str(processes)}
    started = [
        subprocess.Popen(
            [sys.executable, str(script), str(folder)],
            env=common | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    for process in started:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors


def test_two_processes_give_what_one_gives(tmp_path: Path) -> None:
    _run(tmp_path / "one", 1)
    _run(tmp_path / "two", 2)
    for phase, tolerance in (("before", 1e-4), ("after", 2e-3)):  # Adam magnifies rounding where gradients vanish
        one, about_one = load_checkpoint(tmp_path / "one" / phase / "last.safetensors")
        two, about_two = load_checkpoint(tmp_path / "two" / phase / "last.safetensors")
        assert about_one["outcome"]["step"] == about_two["outcome"]["step"] > 3
        for name, tensor in without_prefix("module", one).items():
            torch.testing.assert_close(two[f"module.{name}"], tensor, rtol=tolerance, atol=tolerance, msg=name)
        fresh = without_prefix("module", one)["network.blocks.0.0.weight"]
        assert not torch.allclose(fresh, torch.zeros_like(fresh))


def test_a_step_that_cannot_be_shared_equally_is_refused() -> None:
    with pytest.raises(ValueError, match="3 index of a step cannot be shared by 2 processes"):
        World(0, 2).share({"index": torch.zeros(3, 5)})
