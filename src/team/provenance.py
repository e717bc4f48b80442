"""Where a number comes from: the machine, the versions and the commit that made it."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import platform
import subprocess
from functools import cache
from pathlib import Path

import torch


def hardware(device: torch.device | str) -> str:
    """The device in words, e.g. ``NVIDIA H200`` or ``CPU (x86_64, 2 threads)``."""
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({platform.machine()}, {torch.get_num_threads()} threads)"


def commit() -> str:
    """The commit of the checkout this package runs from, with ``+`` if files differ from it; "" outside of one."""
    folder = Path(__file__).resolve().parent
    try:
        head = _git(folder, "rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git(folder, "status", "--porcelain", "--untracked-files=no", "--", str(folder)) else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


@cache
def source_checksum(module: str) -> str:
    """Of the source of a module of this package and of all that it imports from the package, directly or not.

    A number kept for later is worth something only as long as the code that made it is the same.
    """
    sources, waiting = dict[str, str](), [module]
    while waiting:
        name = waiting.pop()
        found = importlib.util.find_spec(name)
        if name in sources or found is None or found.origin is None:
            continue
        source = sources[name] = Path(found.origin).read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "team":
                waiting.append(node.module)
    return hashlib.sha256(repr(sorted(sources.items())).encode()).hexdigest()


def file_checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()
