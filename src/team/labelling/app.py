"""The labelling page's application: which address gives what. The workbench does the work, the guard the guarding."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from fastapi import Body, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from team.labelling.actions import Action, ExportRequest
from team.labelling.classes import ActionError
from team.labelling.export import export
from team.labelling.journal import JournalError
from team.labelling.security import Guard, Secrets
from team.labelling.thumbnails import SIDES, PictureError, Thumbnails
from team.labelling.workbench import Workbench

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_WORKERS = 4  # pictures decoded at a time, at up to 360 MB each
_LONGEST_WAIT = 10.0
_ENDINGS = {"csv": ".csv", "coco": ".json", "label-studio": ".json"}


@dataclass(frozen=True)
class Surroundings:
    """exports: folder that exports go to; session: where the journal is; skipped: (path, reason) of unusable files."""

    exports: Path
    session: Path
    skipped: Sequence[tuple[str, str]] = ()


class Answer(JSONResponse):
    """JSON in ASCII, so that no file name, however broken, can break an answer."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode("ascii")


def create_app(workbench: Workbench, secrets: Secrets, around: Surroundings) -> ASGIApp:
    """The page for a workbench, behind its guard."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, default_response_class=Answer)
    page = {entry.name: entry.read_bytes() for entry in resources.files("team.labelling").joinpath("page").iterdir()}
    thumbnails = Thumbnails(workbench.folder)
    workers = anyio.CapacityLimiter(_WORKERS)

    @app.get("/")
    def index() -> Response:
        return Response(page["index.html"], media_type=_TYPES[".html"])

    @app.get("/page/{name}")
    def asset(name: str) -> Response:
        kind = _TYPES.get(Path(name).suffix)
        if name not in page or kind is None:
            raise HTTPException(404)
        return Response(page[name], media_type=kind)

    @app.get("/image/{size}/{item}")
    async def image(size: Literal["thumbnail", "preview"], item: int) -> Response:
        if not 0 <= item < len(workbench.paths):
            raise HTTPException(404)
        make = partial(thumbnails.jpeg, workbench.paths[item], SIDES[size])
        content = await anyio.to_thread.run_sync(make, limiter=workers)
        return Response(content, media_type="image/jpeg", headers={"cache-control": "private, max-age=3600"})

    @app.get("/api/session")
    def session() -> Answer:
        return Answer(
            {
                "folder": workbench.folder.name or str(workbench.folder),
                "names": workbench.paths,
                "journal": str(around.session),
                "skipped": [list(each) for each in around.skipped[:1000]],
                "skipped_count": len(around.skipped),
                "state": workbench.snapshot(),
            }
        )

    @app.get("/api/pulse")
    def pulse() -> Answer:
        return Answer({"revision": workbench.session.revision})

    @app.get("/api/predictions")
    async def predictions(revision: int) -> Answer:
        """Waits for predictions of this revision or a later one; after ten seconds, gives what there is."""
        end = time.monotonic() + _LONGEST_WAIT
        while workbench.predictions.revision < revision and time.monotonic() < end:
            await asyncio.sleep(0.02)
        found = workbench.predictions
        return Answer(
            {
                "revision": found.revision,
                "classes": found.classes.tolist(),
                "confidence": (found.confidence * 1000).round().astype(int).tolist(),  # per mille: a third of the size
                "suggestions": found.suggestions,
                "problem": found.problem,
            }
        )

    @app.post("/api/act")
    def act(action: Annotated[Action, Body()]) -> Answer:
        return Answer(workbench.act(action))

    @app.get("/api/explain/{item}")
    def explain(item: int) -> Answer:
        return Answer(asdict(workbench.explain(item)))

    @app.post("/api/export")
    def write(request: ExportRequest) -> Answer:
        rows = workbench.rows(predicted=request.predicted)
        if not rows:
            raise ActionError("there is nothing to export yet; label some images first")
        target = _new_path(around.exports, request.form)
        export(rows, workbench.folder, target, request.form)
        return Answer({"path": str(target), "images": len(rows)})

    _explain_errors(app)
    return Guard(app, secrets)


def _new_path(folder: Path, form: str) -> Path:
    """A name that nothing has yet, so that an export replaces nothing."""
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    for number in range(1, 1000):
        more = f"-{number}" if number > 1 else ""
        path = folder / f"{form}-{stamp}{more}{_ENDINGS.get(form, '')}"
        if not path.exists():
            return path
    raise ActionError(f"{folder} has too many exports of this second; wait a moment")


def _explain_errors(app: FastAPI) -> None:
    """Every failure becomes one readable sentence, as JSON; none shows the inside of the program."""

    def answer(status: int, message: str) -> Answer:
        return Answer({"error": message}, status)

    @app.exception_handler(ActionError)
    @app.exception_handler(PictureError)
    def _(request: Request, error: Exception) -> Answer:
        return answer(409 if isinstance(error, ActionError) else 422, str(error))

    @app.exception_handler(JournalError)
    def _(request: Request, error: JournalError) -> Answer:
        return answer(507, str(error))

    @app.exception_handler(OSError)
    def _(request: Request, error: OSError) -> Answer:
        return answer(507, f"a file could not be read or written: {error.strerror or error}; is the disk full?")

    @app.exception_handler(RequestValidationError)
    def _(request: Request, error: RequestValidationError) -> Answer:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "request"
        return answer(422, f"the request was not understood: {where}: {first['msg']}; load the page again")

    @app.exception_handler(HTTPException)
    def _(request: Request, error: HTTPException) -> Answer:
        return answer(error.status_code, "there is nothing at this address")

    @app.exception_handler(Exception)
    def _(request: Request, error: Exception) -> Answer:
        return answer(500, "something went wrong inside the program; the terminal has the details")
