"""What a person sees of a training run: a bar with rate and time left, or a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any


class Progress:
    """A bar on a terminal (with rich, if it is installed); elsewhere a line for every validation."""

    def __init__(self, name: str, total: int, unit: str, shown: bool) -> None:
        self.name, self.total, self.unit, self.shown = name, total, unit, shown
        self.started, self.first = time.monotonic(), 0
        self.bar: Any = None

    def __enter__(self) -> Progress:
        if self.shown and sys.stderr.isatty():
            try:
                from rich.console import Console
                from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
                from rich.progress import Progress as Bar
            except ImportError:
                return self
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
            )
            self.bar = Bar(*columns, console=Console(stderr=True))
            self.bar.start()
            self.task = self.bar.add_task(self.name, total=self.total, rate="", note="")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.bar is not None:
            self.bar.stop()

    def begin(self, done: int) -> None:
        """Say how much was done before this run."""
        self.started, self.first = time.monotonic(), done
        self.advance(done)

    def advance(self, done: int) -> None:
        if self.bar is not None:
            self.bar.update(self.task, completed=done, rate=self._rate(done))

    def report(self, done: int, row: Mapping[str, float]) -> None:
        """Show the result of a validation."""
        note = "  ".join(f"{name} {value:.2f}" for name, value in row.items())
        if self.bar is not None:
            self.bar.update(self.task, completed=done, note=note)
        elif self.shown:
            print(f"{self.name}: {done}/{self.total} {self.unit}, {self._rate(done)}  {note}", flush=True)

    def _rate(self, done: int) -> str:
        passed = max(time.monotonic() - self.started, 1e-9)
        return f"{(done - self.first) / passed:,.0f} {self.unit}/s"
