"""Who is let in. Built as if someone hostile shared the machine, and as if every other page in the browser were.

In this order, for every request: the Host must be ours (a foreign name that resolves to 127.0.0.1 gets nothing), the
request must be small, the person must hold the cookie that the printed address is traded for, all that carries data
must hold the key as well, and all that changes something must come from our own origin.

Why a key beside the cookie: browsers do not tell ports apart when they send cookies, so a server that another user of
this machine runs on another port would be handed ours. The key is kept where only our origin, port included, can read
it, and no answer to a request without it contains anything of the person's.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_REQUEST = 8 * 2**20  # a label for a million images, named by number
KEY_HEADER = "x-team-key"

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def _secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Secrets:
    """token: in the printed address; cookie: what it is traded for; key: what the page adds to its requests."""

    port: int
    token: str = field(default_factory=_secret, repr=False)
    cookie: str = field(default_factory=_secret, repr=False)
    key: str = field(default_factory=_secret, repr=False)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def hosts(self) -> tuple[str, ...]:
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    @property
    def cookie_name(self) -> str:
        return f"team-{self.port}"


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, secrets: Secrets) -> None:
        self.app, self.secrets = app, secrets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no WebSocket is ever accepted

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        answer = self._refuse(scope)
        if answer is None:
            await self.app(scope, _limited(receive), send_with_headers)
        else:
            await answer(scope, receive, send_with_headers)

    def _refuse(self, scope: Scope) -> Response | None:
        """The answer to a request that must not reach the application; None lets it through."""
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) != 1 or headers["host"] not in self.secrets.hosts:
            return _error(421, "this server answers only to its own address; open the one printed in the terminal")
        if scope["method"] not in ("GET", "POST"):
            return _error(405, "only GET and POST are understood")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 12 or int(length) > LARGEST_REQUEST:
            return _error(413, "the request is too large; select fewer images at a time")
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["method"] == "GET" and scope["path"] == "/" and "token" in query:
            return self._trade(query["token"][0])
        if not _same(self._cookie(headers), self.secrets.cookie):
            message = "open the address that `team label` printed in the terminal; it lets you in"
            return PlainTextResponse(message, 401) if scope["path"] == "/" else _error(401, message)
        if scope["path"].startswith(("/api/", "/image/")):
            given = headers.get(KEY_HEADER) or query.get("key", [""])[0]
            if not _same(given, self.secrets.key):
                return _error(403, "this tab has lost its key; open the address printed in the terminal again")
        if scope["method"] == "POST":
            if headers.get("origin") != f"http://{headers['host']}":
                return _error(403, "changes are accepted from the labelling page only")
            if headers.get("sec-fetch-site", "same-origin") != "same-origin":
                return _error(403, "changes are accepted from the labelling page only")
            if headers.get("content-type") != "application/json":
                return _error(415, "changes must be sent as application/json")
        return None

    def _trade(self, token: str) -> Response:
        """The token for a cookie. A page that moves on by itself, since after a redirect that began on another site a
        browser would hold a SameSite=Strict cookie back; the key travels in the fragment, which is never sent.
        """
        if not _same(token, self.secrets.token):
            return PlainTextResponse("this address is not valid any more; open the one printed in the terminal", 401)
        answer = HTMLResponse(
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>team label</title>'
            '<link rel="icon" href="/page/icon.svg">'
            f'<meta http-equiv="refresh" content="0; url=/#{self.secrets.key}"></head><body></body></html>'
        )
        answer.set_cookie(self.secrets.cookie_name, self.secrets.cookie, httponly=True, samesite="strict", path="/")
        return answer

    def _cookie(self, headers: Headers) -> str:
        """Ours, found by hand: a strict parser gives up on what other programs on this host have set."""
        pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
        return next((value for name, _, value in pairs if name == self.secrets.cookie_name), "")


def _same(given: str, expected: str) -> bool:
    """In a time that does not depend on how much of it is right."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status)


def _limited(receive: Receive) -> Receive:
    """Ends a request without a declared length once it has grown too large."""
    total = 0

    async def limited() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > LARGEST_REQUEST:
            return {"type": "http.disconnect"}
        return message

    return limited
