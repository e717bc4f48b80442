"""What several commands need."""

from __future__ import annotations

from typing import Annotated

import tyro

Name = Annotated[str, tyro.conf.Positional]


def choose_device(wanted: str) -> str:
    """cuda or cpu, from what was asked for: auto takes a GPU if there is one."""
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted not in ("cpu", "cuda"):
        raise ValueError(f"device must be auto, cpu or cuda, not {wanted!r}")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError("there is no CUDA device here; use --device cpu")
    return wanted
