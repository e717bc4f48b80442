"""Someone hostile, in another tab, in the folder, or on the same machine, gets nothing and breaks nothing."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from labelling_server import Client, Server, picture_folder, serving
from PIL import Image

SECRET = b"the contents of a file that is nobody's business"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A folder with ordinary pictures and some that are meant to do harm."""
    base = tmp_path_factory.mktemp("attack")
    folder = base / "pictures"
    paths, features, _ = picture_folder(folder)
    (base / "secret.png").write_bytes(SECRET)
    Image.new("RGB", (8, 8), "red").save(base / "outside.png")
    for number, make in enumerate((_link_out, _link_dots, _bomb, _text, _pipe)):
        (folder / paths[number]).unlink()
        make(folder / paths[number], base)
    (folder / "deep").symlink_to(base)
    paths[5] = "deep/outside.png"
    with serving(folder, paths, features, base / "session.jsonl", trust=True) as server:
        yield server, base


def _link_out(path: Path, base: Path) -> None:
    path.symlink_to(base / "outside.png")


def _link_dots(path: Path, base: Path) -> None:
    path.symlink_to("../outside.png")


def _bomb(path: Path, base: Path) -> None:
    """A PNG of 50 000 × 50 000 pixels in a few kilobytes."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(5_000_000))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


def _text(path: Path, base: Path) -> None:
    path.write_text("<script>alert(1)</script>")


def _pipe(path: Path, base: Path) -> None:
    os.mkfifo(path)


@pytest.fixture
def client(place: tuple[Server, Path]) -> Client:
    return Client(place[0])


def assert_still_well(client: Client) -> None:
    fresh = Client(client.server)
    assert fresh.get("/image/thumbnail/20").headers["content-type"] == "image/jpeg"
    assert fresh.get("/api/session").status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil:{port}",
        "",
        "[::1]:{port}",
    ],
)
@pytest.mark.parametrize("path", ["/", "/?token={token}", "/api/session", "/page/main.js", "/image/thumbnail/20"])
def test_a_foreign_host_gets_nothing(client: Client, host: str, path: str) -> None:
    token = client.server.address.partition("token=")[2]
    reply = client.get(path.format(token=token), host=host.format(port=client.server.port))
    assert reply.status in (400, 421)
    assert "set-cookie" not in reply.headers
    assert len(reply.body) < 200


def test_two_hosts_get_nothing(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.server.port)) as raw:
        lines = [f"GET / HTTP/1.1\r\nHost: {client.host}\r\nHost: evil.example\r\nCookie: {client.cookie}\r\n\r\n"]
        raw.sendall("".join(lines).encode())
        assert raw.recv(100).split()[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "path", ["/", "/page/main.js", "/page/style.css", "/api/session", "/image/thumbnail/20", "/nothing"]
)
def test_without_the_cookie_there_is_nothing_to_see(client: Client, path: str) -> None:
    for cookie in ("", "team-0=x", client.cookie[:-1], client.cookie.split("=")[0] + "="):
        reply = client.get(path, cookie=cookie)
        assert reply.status == 401
        assert b"terminal" in reply.body


def test_a_wrong_token_gets_no_cookie(client: Client) -> None:
    token = client.server.address.partition("token=")[2]
    for wrong in ("", "x", token[:-1], token + "x", "%00", token.swapcase(), "é" * 43):
        reply = client.get("/?token=" + "".join(f"%{byte:02x}" for byte in wrong.encode()), cookie="")
        assert reply.status == 401
        assert "set-cookie" not in reply.headers


def test_the_cookie_alone_opens_no_data(client: Client) -> None:
    """Browsers send cookies to every port of a host: another user's server on another port would be handed ours."""
    for path in ("/api/session", "/api/pulse", "/api/predictions?revision=0", "/api/explain/1", "/image/thumbnail/20"):
        assert client.get(path, x_team_key="").status == 403
        assert client.get(path, x_team_key=client.key[:-1]).status == 403
    assert client.post("/api/act", {"do": "add", "name": "x"}, x_team_key="").status == 403
    assert client.key.encode() not in client.get("/").body


def test_the_cookie_is_strict_and_out_of_reach_of_scripts(client: Client) -> None:
    token = client.server.address.partition("token=")[2]
    cookie = client.get(f"/?token={token}", cookie="").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert "domain" not in cookie.lower()


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": ""},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "https://127.0.0.1:{port}"},
        {"origin": "http://localhost:{port}"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"content_type": "text/plain"},
        {"content_type": "application/x-www-form-urlencoded"},
    ],
)
@pytest.mark.parametrize("path", ["/api/act", "/api/export"])
def test_a_write_from_elsewhere_changes_nothing(client: Client, headers: dict[str, str], path: str) -> None:
    before = client.get("/api/pulse").json()
    given = {name: value.format(port=client.server.port) for name, value in headers.items()}
    assert client.post(path, {"do": "add", "name": "x"}, **given).status in (403, 415)
    assert client.get("/api/pulse").json() == before


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "HEAD"])
def test_other_methods_are_not_answered(client: Client, method: str) -> None:
    assert client.request(method, "/api/session").status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/page/../journal.py",
        "/page/..%2fjournal.py",
        "/page/%2e%2e/journal.py",
        "/page/..\\journal.py",
        "/page//etc/passwd",
        "/page/%2fetc%2fpasswd",
        "/page/main.js%00.css",
        "/page/__init__.py",
        "/image/thumbnail/../../secret.png",
        "/image/thumbnail/..%2f..%2fsecret.png",
        "/image/thumbnail/%2fetc%2fpasswd",
        "/image/thumbnail//etc/passwd",
        "/image/thumbnail/20%00",
        "/image/thumbnail/-1",
        "/image/thumbnail/99999999999999999999999999",
        "/image/thumbnail/1e1",
        "/image/original/20",
        "/secret.png",
        "/..%2fsecret.png",
        "/docs",
        "/openapi.json",
    ],
)
def test_no_path_leads_out(client: Client, path: str) -> None:
    reply = client.get(path)
    assert reply.status in (404, 422)
    assert SECRET not in reply.body
    assert b"root:" not in reply.body
    assert_still_well(client)


def test_links_out_bombs_and_things_that_are_no_images_are_refused(client: Client) -> None:
    for item in range(6):
        reply = client.get(f"/image/thumbnail/{item}")
        assert reply.status == 422, item
        assert reply.headers["content-type"] == "application/json"
        assert reply.json()["error"]
    assert "leads out of it" in client.get("/image/thumbnail/5").json()["error"]
    assert_still_well(client)


def test_links_out_are_left_out_of_a_session(place: tuple[Server, Path]) -> None:
    import numpy as np

    from team.labelling.embed_folder import FolderFeatures
    from team.labelling.server import only_inside

    folder = (place[1] / "pictures").resolve()
    (folder / "within.png").symlink_to(folder / "picture-0030.png")
    paths = ["deep/outside.png", "picture-0000.png", "picture-0001.png", "picture-0030.png", "within.png"]
    found = only_inside(folder, FolderFeatures(paths, np.zeros((5, 2), np.float32), []))
    assert found.paths == ["picture-0030.png", "within.png"]
    assert [path for path, _ in found.skipped] == paths[:3]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'{"do":"nothing"}',
        b'{"do":"label","labels":{"1":["../secret.png"]}}',
        b'{"do":"label","labels":{"1":[-1]}}',
        b'{"do":"label","labels":{"1":[1.5]}}',
        b'{"do":"label","labels":{"1":[1000000]}}',
        b'{"do":"label","labels":{"99":[20]}}',
        b'{"do":"label","labels":{"x":[20]}}',
        b'{"do":"label","source":"predicted","labels":{"1":[20]}}',
        b'{"do":"label","labels":{"0":[20]}}',
        b'{"do":"add","name":"a","class":7}',
        b'{"do":"add","name":""}',
        b'{"do":"add","name":"two\\nlines"}',
        b'{"do":"add","name":"null\\u0000byte"}',
        b'{"do":"add","name":"turned \\u202e round"}',
        b'{"do":"add","name":"half \\ud800"}',
        b'{"do":"merge","number":1,"into":1}',
        b'{"do":"rename","number":77,"name":"x"}',
        b'{"do":"audit","sample":{}}',
        b'{"do":"add","name":' + b"[" * 5000 + b"]" * 5000 + b"}",
        json.dumps({"do": "add", "name": "x" * 101}).encode(),
        json.dumps({"do": "add", "name": "x" * 100_000}).encode(),
    ],
)
def test_a_malformed_action_is_refused_in_words(client: Client, body: bytes) -> None:
    before = client.get("/api/session").json()["state"]
    reply = client.request("POST", "/api/act", body)
    assert reply.status in (400, 409, 422)
    assert reply.json()["error"]
    assert "Traceback" not in reply.body.decode()
    assert client.get("/api/session").json()["state"] == before


def test_requests_are_limited_in_size(client: Client) -> None:
    large = Client(client.server)
    large.connection.putrequest("POST", "/api/act", skip_host=True)
    for name, value in {"host": client.host, "content-length": str(10**10)}.items():
        large.connection.putheader(name, value)
    large.connection.endheaders()
    assert large.connection.getresponse().status == 413
    with socket.create_connection(("127.0.0.1", client.server.port)) as raw:  # without saying how much will come
        head = {
            "host": client.host,
            "origin": f"http://{client.host}",
            "cookie": client.cookie,
            "x-team-key": client.key,
        }
        head |= {"content-type": "application/json", "transfer-encoding": "chunked"}
        raw.sendall(
            b"POST /api/act HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in head.items()).encode() + b"\r\n"
        )
        piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        try:
            for _ in range(64):
                raw.sendall(piece)
            status = int(raw.recv(100).split()[1])
        except (ConnectionError, IndexError):
            status = 413  # it hung up
        assert status >= 400
    assert_still_well(client)


def test_every_answer_carries_the_headers_that_bind_the_browser(client: Client) -> None:
    for path in ("/", "/page/main.js", "/api/session", "/image/thumbnail/20", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers


def test_the_page_has_no_markup_that_the_policy_would_block_and_nothing_from_outside() -> None:
    page = Path(__file__).resolve().parent.parent / "src" / "team" / "labelling" / "page"
    for file in page.iterdir():
        text = file.read_text(encoding="utf-8")
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert forbidden not in text, f"{file.name} has {forbidden}"
        assert "https://" not in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        if file.suffix == ".html":
            assert re.search(r"\s(style|on\w+)=", text) is None
            assert re.search(r"<script(?![^>]* src=)", text) is None


def test_the_server_listens_on_the_loopback_interface_alone(client: Client) -> None:
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    port = f":{client.server.port:04X}"
    addresses = {line.split()[1] for line in listening if line.split()[1].endswith(port) and line.split()[3] == "0A"}
    assert addresses == {f"0100007F{port}"}
    six = Path("/proc/net/tcp6")
    assert not six.exists() or port not in six.read_text()


def test_the_journal_is_for_its_owner_alone(client: Client, place: tuple[Server, Path], tmp_path: Path) -> None:
    from team.labelling.journal import Journal

    client.act(do="add", name="<script>alert('class')</script>")
    for file in place[1].glob("session.jsonl*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    Journal(tmp_path / "new" / "session.jsonl", tmp_path).close()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_exports_stay_where_they_belong_whatever_a_class_is_called(client: Client, place: tuple[Server, Path]) -> None:
    for number, name in enumerate(("../../up", "/etc/passwd", "..", "CON", "a/b\\c", "=cmd()")):
        client.label(name, 30 + number)
    before = {path for path in place[1].rglob("*") if "exports" not in path.parts}
    for form in ("csv", "folders", "imagefolder", "coco", "label-studio"):
        reply = client.post("/api/export", {"form": form, "predicted": False})
        assert reply.status == 200, reply
        written = Path(reply.json()["path"]).resolve()
        assert written.is_relative_to((place[1] / "exports").resolve())
        for path in written.rglob("*"):
            assert path.resolve().is_relative_to(written)
    assert {path for path in place[1].rglob("*") if "exports" not in path.parts} == before


def test_a_second_writer_is_refused(place: tuple[Server, Path]) -> None:
    from team.labelling.journal import Journal, JournalError

    with pytest.raises(JournalError, match="is open in another window"):
        Journal(place[1] / "session.jsonl", (place[1] / "pictures").resolve())


def test_the_token_is_not_on_any_command_line(place: tuple[Server, Path]) -> None:
    token = place[0].address.partition("token=")[2].encode()
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert token not in line.read_bytes()
        except OSError:
            continue
