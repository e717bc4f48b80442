"""What several commands need."""

from __future__ import annotations

import ctypes
import sys
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


def keep_freed_memory() -> None:
    """Let the C library keep for this process what tensors give back, where it is glibc; elsewhere do nothing.

    glibc maps every large block anew and the kernel clears its pages each time, which a ConvNet on a CPU spends a good
    part of its time on. A server, which should give memory back, is better off without.
    """
    set_option = getattr(ctypes.CDLL(None) if sys.platform == "linux" else None, "mallopt", None)
    if set_option is not None:
        trim_threshold, mmap_max = -1, -4  # as malloc.h numbers them
        set_option(mmap_max, 0)  # from the heap, however large
        set_option(trim_threshold, 2**31 - 1)  # which shrinks only when 2 GiB at its end are free
