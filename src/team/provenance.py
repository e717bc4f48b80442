"""Where a number comes from: the machine, the versions and the commit that made it."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import torch


def hardware(device: torch.device | str) -> str:
    """The device in words, e.g. ``NVIDIA H200`` or ``CPU (x86_64, 2 threads)``."""
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({platform.machine()}, {torch.get_num_threads()} threads)"


def commit() -> str:
    """The commit of the checkout this package runs from, with ``+`` if files differ from it.

    A copy without history, as it travels to a GPU machine, says what ``TEAM_COMMIT`` in its environment says, or "".
    """
    folder = Path(__file__).resolve().parent
    try:
        head = _git(folder, "rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git(folder, "status", "--porcelain", "--untracked-files=no", "--", str(folder)) else "")
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("TEAM_COMMIT", "")


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()
