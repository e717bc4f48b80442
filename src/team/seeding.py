"""Random numbers that depend on a seed and a place in the program, and on nothing else."""

from __future__ import annotations

import hashlib

import torch


def generator(seed: int, *place: object) -> torch.Generator:
    """A CPU generator for this place, e.g. ``generator(seed, "episode", step)``; different places are independent.

    Since nothing is carried over from step to step, a run can go on from any step without saving a generator's state.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"a seed must be a whole number, not {seed!r}")
    digest = hashlib.blake2b(repr((seed, *place)).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)
