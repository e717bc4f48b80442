"""What benchmarks that fill a page have in common: run and write a JSON file and its page, or only the page anew."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from team.files import write_json

Found = dict[str, Any]


def fill_page(
    description: str,
    run: Callable[[Path, str], Found],
    write_page: Callable[[Found, Path], None],
    *,
    results: str,
    page: str,
    again: str,
) -> Found:
    """What ``run(folder of checkpoints, device)`` found, kept in the file ``results`` and shown on ``page`` above it.

    again: the flag with which that file is only read
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(again, dest="again", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--results", type=Path, default=Path(results))
    options = parser.parse_args()
    if not options.again:
        write_json(options.results, run(Path("runs"), options.device))
    found: Found = json.loads(options.results.read_text(encoding="utf-8"))
    write_page(found, options.results.parents[1] / page)
    return found
