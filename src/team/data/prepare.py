"""From official files to the cache."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from team.data.cache import Index, ShardWriter
from team.data.parallel import parallel
from team.data.pixels import encode
from team.data.progress import bar
from team.data.request import Request
from team.data.source import DataError, Picture, Reading, file_digest, locate, unpacked
from team.data.splits import PARTS, SplitChoice


def prepare(
    name: str,
    root: str | Path,
    *,
    split: SplitChoice = None,
    size: int = 84,
    crop: bool = True,
    encoding: str = "exact",
    parts: Sequence[str] = PARTS,
    cache: str | Path | None = None,
    progress: bool | None = None,
) -> dict[str, Index]:
    """Decode a data set once, into the cache; what is there already, whole and from the same source, is kept.

    root: the official archive, its folder, or the folder that either is in
    crop: cut to the bounding box, where the data set has one
    encoding: "exact", or "jpeg" for carrying large images (see :func:`team.data.pixels.encode`)
    parts: which of train, val and test; each is prepared and kept on its own
    cache: the folder of prepared data sets, instead of ``data`` in :func:`team.files.cache_folder`
    progress: show a bar; None: if a terminal is there to show it on

    The source's checksum is of an archive's bytes, or of a folder what :meth:`Reading.checksum` says.
    """
    request = Request.checked(name, None, root, split, size, crop, encoding, cache)
    return prepare_requests([request.of(part) for part in parts], Path(root).expanduser(), progress)


def prepare_requests(requests: Sequence[Request], root: Path, progress: bool | None) -> dict[str, Index]:
    """Prepare several parts of one data set; an archive is unpacked once, and only if a part needs it."""
    if not requests:
        return {}
    place = locate(root, requests[0].dataset)
    folder = place if place.is_dir() else None
    archive = "" if folder else file_digest(place)
    done = {}
    with ExitStack() as stack:
        for request in requests:
            part = request.settings.part
            if archive and (index := request.current(archive)):
                done[part] = index
                continue
            if folder is None:
                folder = stack.enter_context(unpacked(place, request.dataset, request.cache))
            reading = request.read(folder)
            source = archive or reading.checksum()
            done[part] = request.current(source) or _write(request, reading, source, place, progress)
    return done


def _write(request: Request, reading: Reading, source: str, place: Path, progress: bool | None) -> Index:
    settings = request.settings
    writer = ShardWriter(request.cache, settings, source)
    pictures = [(picture, label) for label, listed in enumerate(reading.pictures.values()) for picture in listed]

    def work(item: tuple[Picture, int]) -> tuple[bytes, int]:
        return encode(item[0], settings.size, settings.crop, settings.encoding), item[1]

    try:
        with bar(f"{settings.dataset} {settings.part}", len(pictures), progress) as advance:
            for image, label in parallel(work, pictures):
                writer.add(image, label)
                advance(1)
    except DataError as error:
        raise DataError(f"in {place}: {error}") from error
    return writer.finish(reading.pictures, map(len, reading.pictures.values()))
