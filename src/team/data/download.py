"""Downloading the official archives, on a machine that reaches the internet: resumed when broken off, then checked."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path

from team.data.progress import bar
from team.data.request import find
from team.data.source import DataError, file_digest

_TRIES = 4
_TIMEOUT = 60.0  # seconds without a byte


def download(name: str, root: str | Path, *, progress: bool | None = None, pause: float = 3.0) -> Path:
    """Download the official archive of a data set into the folder ``root``, and give its path.

    What is there already and has the right md5 is kept. A broken connection is taken up where it broke, ``pause``
    seconds later at first; a download broken off altogether is continued by the next call.
    """
    dataset = find(name)
    if dataset.url is None or dataset.archive is None or dataset.md5 is None:
        raise DataError(f"{dataset.title} cannot be downloaded. {dataset.by_hand}")
    target = Path(root).expanduser() / dataset.archive
    if target.is_file() and file_digest(target, "md5") == dataset.md5:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.part")
    for attempt in range(_TRIES):
        try:
            _fetch(dataset.url, partial, f"{dataset.title} ({target.name})", progress)
            break
        except urllib.error.HTTPError as error:
            raise DataError(f"{dataset.url} answers {error.code} {error.reason}. {dataset.by_hand}") from error
        except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
            if attempt == _TRIES - 1:
                kept = partial.stat().st_size if partial.exists() else 0
                raise DataError(
                    f"{dataset.url} cannot be reached, or broke off {_TRIES} times ({error}); {kept} bytes are "
                    f"kept in {partial} and the next try goes on from there. Without internet: {dataset.by_hand}"
                ) from error
            time.sleep(pause * 2**attempt)
    found = file_digest(partial, "md5")
    if found != dataset.md5:
        partial.unlink()
        raise DataError(
            f"{dataset.url} gave a file with md5 {found}, not the official {dataset.md5}; it was removed. Try again, "
            f"and if that repeats, get it by hand. {dataset.by_hand}"
        )
    partial.replace(target)
    return target


def _fetch(url: str, partial: Path, title: str, progress: bool | None) -> None:
    """Continue ``partial`` with the bytes that ``url`` has beyond it."""
    have = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing lies beyond: it is whole, or not this file; the md5 tells
            return
        raise
    with response:
        # A server that knows no ranges answers 200 and sends everything: then begin again.
        resumed = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        start = have if resumed else 0
        length = response.headers.get("Content-Length")
        total = None if length is None else start + int(length)
        with open(partial, "ab" if resumed else "wb") as file, bar(title, total, progress, of_bytes=True) as advance:
            advance(start)
            while block := response.read(1 << 18):
                file.write(block)
                advance(len(block))
    if total is not None and partial.stat().st_size < total:
        raise ConnectionError(f"the connection closed after {partial.stat().st_size} of {total} bytes")
