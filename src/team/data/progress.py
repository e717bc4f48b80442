"""A progress bar with rate and time left, or nothing: rich is imported only when a bar is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(
    description: str, total: int | None, shown: bool | None, *, of_bytes: bool = False
) -> Iterator[Callable[[int], None]]:
    """Give a function to call with each advance. ``shown=None``: only where a person watches (stderr is a terminal)."""
    if shown is None:
        shown = sys.stderr.isatty()
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f}/s" if speed else "-/s")

    units: list[ProgressColumn] = (
        [DownloadColumn(), TransferSpeedColumn()] if of_bytes else [MofNCompleteColumn(), Rate()]
    )
    with Progress(
        TextColumn("{task.description}"), BarColumn(), *units, TimeRemainingColumn(), console=Console(stderr=True)
    ) as progress:
        task = progress.add_task(description, total=total)
        yield lambda count: progress.advance(task, count)
