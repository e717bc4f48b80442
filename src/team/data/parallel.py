"""The same work on many items, on all cores, in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

In = TypeVar("In")
Out = TypeVar("Out")
_CHUNK = 64


def parallel(work: Callable[[In], Out], items: Sequence[In], *, chunk: int = _CHUNK) -> Iterator[Out]:
    """``work`` of each item. Threads suffice: Pillow lets go of the interpreter while it decodes and resizes.

    chunk: items per task; one by one, handing them over would cost as much as decoding a small image. A few chunks are
    under way at a time, so that results never pile up.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = min(cores, 16)
    chunks = (items[start : start + chunk] for start in range(0, len(items), chunk))
    with ThreadPoolExecutor(cores) as pool:
        waiting = [pool.submit(_all, work, each) for each in islice(chunks, 2 * cores)]
        try:
            while waiting:
                results = waiting.pop(0).result()
                waiting += [pool.submit(_all, work, each) for each in islice(chunks, 1)]
                yield from results
        finally:
            for future in waiting:
                future.cancel()


def _all(work: Callable[[In], Out], chunk: Sequence[In]) -> list[Out]:
    return [work(item) for item in chunk]
