"""Outcomes that took time to find, each in a file under a key of all that decided it: a run can stop and go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from team.evaluation.features import checksum
from team.files import cache_folder, write_json

Outcome = dict[str, Any]


def kept(kind: str, key: dict[str, Any], find: Callable[[], Outcome], *, cache: Path | None = None) -> Outcome:
    """The outcome under this key, of JSON values: from ``<cache>/leaderboard/<kind>-<checksum>.json``, or found now."""
    key = json.loads(json.dumps(key))  # as it will be read again
    path = (cache or cache_folder() / "leaderboard") / f"{kind}-{checksum(key)[:32]}.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["key"] == key:
            return dict(content["outcome"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not there, or not whole: found below
    outcome = find()
    write_json(path, {"key": key, "outcome": outcome})
    return outcome
