"""A real labelling server in a process of its own, and a client that speaks to it as a browser would.

Processes are forked from one that has imported everything, so that a test can afford a hundred of them. Sockets to
anywhere but the loopback interface are blocked in every one.
"""

from __future__ import annotations

import http.client
import io
import json
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["team.labelling.server", "team.labelling.predict", "uvicorn", "scipy.stats"])


class _Lines(io.TextIOBase):
    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def write(self, text: str) -> int:
        if text.strip():
            self.connection.send(text)
        return len(text)


def block_all_but_loopback() -> None:
    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.bind", "socket.sendto"):
            address = arguments[1]
            if isinstance(address, tuple) and address[0] != "127.0.0.1":
                raise PermissionError(f"a socket to {address} was asked for")
        if event in ("socket.getaddrinfo", "socket.gethostbyname") and arguments[0] not in ("127.0.0.1", None):
            raise PermissionError(f"the name {arguments[0]} was looked up")

    sys.addaudithook(refuse)


def _serve(
    connection: Connection,
    folder: Path,
    paths: Sequence[str],
    features: NDArray[np.float32],
    session: Path,
    options: dict[str, Any],
) -> None:
    import torch

    from team.labelling.embed_folder import FolderFeatures
    from team.labelling.journal import Journal
    from team.labelling.server import listen, only_inside, run

    torch.set_num_threads(1)
    block_all_but_loopback()
    if limit := options.pop("largest_file", None):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    sys.stdout = _Lines(connection)  # type: ignore[assignment]
    found = FolderFeatures(list(paths), features, [])
    if not options.pop("trust", False):
        found = only_inside(folder, found)
    run(folder, found, Journal(session, folder), listen(0), exports=session.parent / "exports", **options)


@dataclass
class Server:
    """address: with the token; printed: what the server says, kept open so that it can go on saying things."""

    address: str
    process: Any
    printed: Connection

    @property
    def port(self) -> int:
        port = urlsplit(self.address).port
        assert port is not None
        return port

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.process.join()

    def stop(self) -> None:
        if self.process.is_alive():
            os.kill(self.pid, signal.SIGINT)
        self.process.join(10)
        if self.process.is_alive():
            self.kill()


def start(folder: Path, paths: Sequence[str], features: NDArray[np.float32], session: Path, **options: Any) -> Server:
    ours, theirs = _processes.Pipe()
    process = _processes.Process(
        target=_serve, args=(theirs, folder.resolve(), paths, features, session, options), daemon=True
    )
    process.start()
    theirs.close()
    while True:
        if not ours.poll(60):
            raise TimeoutError("the server did not start")
        line = ours.recv()
        if line.startswith("open "):
            return Server(line.split()[1], process, ours)


@contextmanager
def serving(*arguments: Any, **options: Any) -> Iterator[Server]:
    server = start(*arguments, **options)
    try:
        yield server
    finally:
        server.stop()


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Trades the token as a browser does, and keeps one connection."""

    server: Server
    cookie: str = ""
    key: str = ""
    connection: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        traded = self.request("GET", "/?" + urlsplit(self.server.address).query)
        assert traded.status == 200, traded
        self.cookie = traded.headers["set-cookie"].split(";")[0]
        self.key = traded.body.decode().split("url=/#")[1].split('"')[0]

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """As the page asks, but for the headers given here (underscores stand for hyphens; empty: left out)."""
        own = {"host": self.host, "cookie": self.cookie, "x-team-key": self.key}
        if method == "POST":
            own |= {"origin": f"http://{self.host}", "content-type": "application/json"}
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in own.items():
            if value:
                self.connection.putheader(name, value)
        if body is not None and "transfer-encoding" not in own:
            self.connection.putheader("content-length", own.get("content-length", str(len(body))))
        self.connection.endheaders(body)
        answer = self.connection.getresponse()
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def get(self, path: str, **headers: str) -> Reply:
        return self.request("GET", path, **headers)

    def post(self, path: str, value: Any, **headers: str) -> Reply:
        return self.request("POST", path, json.dumps(value).encode(), **headers)

    def act(self, **action: Any) -> dict[str, Any]:
        reply = self.post("/api/act", action)
        assert reply.status == 200, reply
        answer: dict[str, Any] = reply.json()
        return answer

    def label(self, name: str, *items: int) -> dict[str, Any]:
        """Label with a class of this name, which is added if it is new."""
        classes = {each["name"]: each["number"] for each in self.get("/api/session").json()["state"]["classes"]}
        if name in classes:
            return self.act(do="label", labels={classes[name]: list(items)})
        return self.act(do="label", labels={0: list(items)}, name=name)


def picture_folder(folder: Path, each: int = 20, classes: int = 3) -> tuple[list[str], NDArray[np.float32], list[int]]:
    """Small pictures, every class in a colour of its own, in mixed order; their paths, features and classes."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    truth = random.permutation(np.repeat(np.arange(classes), each))
    paths = [f"picture-{number:04}.png" for number in range(len(truth))]
    for path, label in zip(paths, truth, strict=True):
        colour = np.array([(200, 60, 60), (60, 170, 90), (70, 90, 210)][label % 3])
        pixels = np.clip(colour + random.normal(0, 25, (24, 24, 3)), 0, 255)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / path)
    centres = 3 * random.normal(size=(classes, 16))
    features = (centres[truth] + random.normal(size=(len(truth), 16))).astype(np.float32)
    return paths, features, truth.tolist()
