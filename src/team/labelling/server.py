"""`team label FOLDER`: from a folder of images to a page in the browser, on this machine and for this person only."""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from html import escape
from pathlib import Path
from typing import Any

from team.labelling.app import Surroundings, create_app
from team.labelling.embed_folder import FolderFeatures, embed_folder
from team.labelling.given import given_labels
from team.labelling.images import find_images
from team.labelling.journal import Journal
from team.labelling.predict import check_method
from team.labelling.security import Secrets
from team.labelling.thumbnails import PictureError, open_inside
from team.labelling.workbench import Workbench


def serve(
    folder: Path,
    *,
    labels: Path | None = None,
    subfolders: bool = False,
    session: Path | None = None,
    exports: Path | None = None,
    port: int = 0,
    open_browser: bool = True,
    embedder: Any = None,
    method: str | None = None,
) -> None:
    """Embed the images below ``folder`` and serve the labelling page until interrupted.

    labels: a table of labels that are there already, taken over when the session is new
    subfolders: take the names of sub-folders as labels, too
    session: file of the journal; by default one per folder in the user's data folder, so that the folder stays as it is
    exports: folder for what the page exports; by default one beside where the program was started
    port: 0 for any free one; embedder, method: as for :func:`team.labelling.folder.label_folder`
    """
    check_method(method)
    folder = _resolved(folder)
    path = session.absolute() if session else session_path(folder)
    given = given_labels(folder, find_images(folder)[0], labels, subfolders=subfolders)
    # Before the long wait for the features: if another process has the session or the port, better to know at once.
    with closing(Journal(path, folder)) as journal, closing(listen(port)) as listener:
        found = only_inside(folder, embed_folder(folder, embedder=embedder))
        if not found.paths:
            raise ValueError(f"there is no image in {folder} that can be shown; give a folder of JPEG, PNG or the like")
        exports = exports or exports_path(folder)
        run(folder, found, journal, listener, exports=exports, labels=given, open_browser=open_browser, method=method)


def run(
    folder: Path,
    found: FolderFeatures,
    journal: Journal,
    listener: socket.socket,
    *,
    exports: Path,
    labels: Mapping[str, str] | None = None,
    open_browser: bool = False,
    method: str | None = None,
) -> None:
    """Serve the page, on a socket that :func:`listen` gave, for a folder (resolved) whose features are there."""
    import uvicorn

    secrets = Secrets(listener.getsockname()[1])
    workbench = Workbench(folder, found.paths, found.features, journal, method=method)
    readable = set(found.paths)
    given = {path: label for path, label in (labels or {}).items() if path in readable}
    if given and not workbench.take_over(given):
        print("this session has begun already, with labels of its own; those given now are left aside")
    app = create_app(workbench, secrets, Surroundings(exports.absolute(), journal.path, found.skipped))
    settings = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,  # a log of requests would hold the token
        proxy_headers=False,
        server_header=False,
        limit_concurrency=128,
        timeout_graceful_shutdown=1,
    )
    print(f"{len(found.paths)} images of {folder}")
    print(f"every action is saved at once in {journal.path}")
    print(f"open {secrets.address}")
    print("on this machine, for you alone; stop with Ctrl-C, and go on any time with the same command", flush=True)
    # The interrupt that stops the server is passed on by it, unless interrupts are ignored, as in a shell's background.
    with closing(workbench), suppress(KeyboardInterrupt), _opened(secrets.address) if open_browser else nullcontext():
        uvicorn.Server(settings).run(sockets=[listener])
    print("stopped; everything is saved")


def listen(port: int) -> socket.socket:
    """A socket on the loopback interface alone."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name != "nt":  # there, this would let another program take the port over
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise ValueError(f"port {port} cannot be used ({error}); choose another, or 0 for any free one") from error
    listener.listen(64)
    return listener


def session_path(folder: Path) -> Path:
    """Where the journal of this folder is kept: ``$XDG_DATA_HOME/team/labelling``, one file per folder."""
    base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    name = "".join(letter if letter.isalnum() else "-" for letter in folder.name)[:40]
    return base / "team" / "labelling" / f"{name}-{digest}.jsonl"


def exports_path(folder: Path) -> Path:
    """A folder beside where the program was started, or beside the images if that is among them."""
    here = Path.cwd()
    base = folder.parent if here.resolve().is_relative_to(folder) else here
    return base / f"{folder.name or 'folder'}-labels"


def only_inside(folder: Path, found: FolderFeatures) -> FolderFeatures:
    """Without files that lead out of the folder: a link in a downloaded folder must not show what lies elsewhere."""
    keep, refused = [], []
    for place, path in enumerate(found.paths):
        try:
            open_inside(folder, path).close()
            keep.append(place)
        except PictureError as error:
            refused.append((path, str(error)))
    paths = [found.paths[place] for place in keep]
    return FolderFeatures(paths, found.features[keep], sorted([*found.skipped, *refused]))


def _resolved(folder: Path) -> Path:
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; give the folder that holds the images")
    return folder.resolve()


@contextmanager
def _opened(address: str) -> Iterator[None]:
    """Open the browser through a file only this user can read: other users see the command lines of our programs."""
    with tempfile.TemporaryDirectory(prefix="team-label-") as private:
        file = Path(private) / "open.html"
        file.write_text(
            f'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={escape(address)}">',
            encoding="utf-8",
        )
        webbrowser.open(file.as_uri())
        yield
