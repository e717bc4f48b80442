"""What all pictures of a report share: a figure that needs no screen, colours for everybody, names that fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from team.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by colour-blind readers too.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#666666")
MARKERS = ("o", "s", "^", "D", "v", "P", "h", "X")
RIGHT, WRONG = "#009e73", "#d5331a"

_LOOK: Any = {  # matplotlib types its many keys one by one
    "font.family": "DejaVu Sans",
    "font.size": 11.0,
    "axes.titlesize": 12.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "text.parse_math": False,
}


@contextmanager
def figure(path: Path, width: float, height: float) -> Iterator[Figure]:
    """A figure of this size in inches, written to ``path`` as PNG on leaving; no state is left in matplotlib."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(_LOOK):
        canvas = FigureCanvasAgg(Figure(figsize=(width, height), layout="constrained", facecolor="white"))
        yield canvas.figure
        with atomic_path(path) as temporary:
            canvas.figure.savefig(temporary, format="png", dpi=150)


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def marker(index: int) -> str:
    return MARKERS[index % len(MARKERS)]


def short(name: str, length: int = 20) -> str:
    """A name for a label: cut where it is too long, kept in one line."""
    name = " ".join(name.split())
    return name if len(name) <= length else name[: length - 1] + "…"
