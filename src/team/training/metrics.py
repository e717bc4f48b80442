"""Metrics of a run as JSON lines, and in TensorBoard where that is installed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from team.files import write_text, writing


class Metrics:
    """Appends to ``path``; lines beyond ``step``, which a killed run wrote after its last checkpoint, are dropped."""

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        kept = []
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
                if line.endswith("\n") and json.loads(line)["step"] <= step:
                    kept.append(line)
        write_text(path, "".join(kept))
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115 (closed by close)
        self.board: Any = None
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self.board = SummaryWriter(str(path.parent / "tensorboard"), purge_step=step)

    def write(self, step: int, row: dict[str, float]) -> None:
        with writing(self.path):
            self.file.write(json.dumps({"step": step} | row) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())
        if self.board is not None:
            for name, value in row.items():
                self.board.add_scalar(name, value, step)

    def close(self) -> None:
        with writing(self.path):
            self.file.close()
        if self.board is not None:
            self.board.close()
