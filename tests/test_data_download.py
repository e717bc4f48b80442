"""Downloads: resumed where they broke off, checked, and plain about what to do by hand."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from team.data import DATASETS, DataError, download

CONTENT = bytes(range(256)) * 400


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT; ``breaks`` answers stop half-way through what they promised."""

    ranges = True
    breaks = 0
    status = 0
    asked: list[str | None] = []  # noqa: RUF012 - replaced by each test

    def do_GET(self):
        cls = type(self)
        wanted = self.headers.get("Range")
        cls.asked.append(wanted)
        if cls.status:
            self.send_error(cls.status)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and cls.ranges else 0
        if start >= len(CONTENT):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        body = CONTENT[start:]
        if cls.breaks:
            cls.breaks -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    handler = type("OwnHandler", (Handler,), {"asked": []})
    serving = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
    url = f"http://127.0.0.1:{serving.server_port}/cifar-100-python.tar.gz"
    md5 = hashlib.md5(CONTENT).hexdigest()
    monkeypatch.setitem(DATASETS, "cifar100", replace(DATASETS["cifar100"], url=url, md5=md5))
    yield handler
    serving.shutdown()
    serving.server_close()


def test_a_download_is_whole_and_not_repeated(server, tmp_path):
    path = download("cifar100", tmp_path / "new", pause=0)
    assert path.read_bytes() == CONTENT
    assert download("cifar100", tmp_path / "new", pause=0) == path
    assert server.asked == [None]


def test_a_broken_download_goes_on_where_it_broke(server, tmp_path):
    server.breaks = 2
    assert download("cifar100", tmp_path, pause=0).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=51200-", "bytes=76800-"]
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-100-python.tar.gz"]


def test_a_later_call_goes_on_with_what_an_earlier_one_left(server, tmp_path):
    (tmp_path / "cifar-100-python.tar.gz.part").write_bytes(CONTENT[:1000])
    assert download("cifar100", tmp_path, pause=0).read_bytes() == CONTENT
    assert server.asked == ["bytes=1000-"]


def test_a_whole_part_file_is_only_checked(server, tmp_path):
    (tmp_path / "cifar-100-python.tar.gz.part").write_bytes(CONTENT)
    assert download("cifar100", tmp_path, pause=0).read_bytes() == CONTENT


def test_a_server_without_ranges_is_asked_from_the_start(server, tmp_path):
    server.ranges = False
    (tmp_path / "cifar-100-python.tar.gz.part").write_bytes(b"x" * 1000)
    assert download("cifar100", tmp_path, pause=0).read_bytes() == CONTENT


def test_a_file_with_the_wrong_md5_is_refused_and_removed(server, tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "cifar100", replace(DATASETS["cifar100"], md5="0" * 32))
    with pytest.raises(DataError, match="not the official 00000000"):
        download("cifar100", tmp_path, pause=0)
    assert not list(tmp_path.iterdir())


def test_without_a_connection_it_says_what_to_do_by_hand(server, tmp_path, monkeypatch):
    server.breaks = 99
    with pytest.raises(DataError, match=r"broke off 4 times .* bytes are kept in .*\.part.*internet: Put cifar"):
        download("cifar100", tmp_path, pause=0)
    server.status = 404
    with pytest.raises(DataError, match=r"answers 404 .*Put cifar-100-python\.tar\.gz"):
        download("cifar100", tmp_path, pause=0)
    monkeypatch.setitem(DATASETS, "cub", replace(DATASETS["cub"], url="http://127.0.0.1:9/CUB_200_2011.tgz"))
    with pytest.raises(DataError, match=r"cannot be reached.*Put CUB_200_2011\.tgz"):
        download("cub", tmp_path, pause=0)


@pytest.mark.parametrize("name", ["miniimagenet", "folder"])
def test_what_cannot_be_downloaded_is_said_plainly(name, tmp_path):
    with pytest.raises(DataError, match="cannot be downloaded"):
        download(name, tmp_path)
    with pytest.raises(DataError, match="licence lets nobody hand it on"):
        download("miniimagenet", tmp_path)
