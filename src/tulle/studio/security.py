"""The door: who may talk to the studio. One person, one browser, this machine.

Any page in any tab of the custodian's browser can send requests to 127.0.0.1, and any program on
the machine can connect. So every request must come from a program of the same user, where the
system tells (:mod:`tulle.studio.peers`), carry the cookie that the one-time link gave, name the
studio's own host (a rebound DNS name does not), and, if a browser says where it comes from, come
from the studio's own pages. Answers may not be framed, cached or read by other origins.
"""

from __future__ import annotations

import hmac
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tulle.studio.peers import HOST, Peers
from tulle.studio.tokens import new_key

_COOKIE = "tulle_studio_{}"
"""Named by port: cookies do not tell ports apart, and two studios may run at once."""

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_READING = frozenset({"GET", "HEAD"})


class Door:
    """An ASGI layer that lets the custodian's browser in and nobody else."""

    def __init__(self, app: ASGIApp, *, port: int, peers: Peers | None = None) -> None:
        self._app, self._peers = app, peers
        # No other name: whoever listens on ::1 may be what a browser takes for localhost.
        self._host = f"{HOST}:{port}"
        self._cookie = _COOKIE.format(port)
        self._token: str | None = None
        self._key = new_key()

    def link(self) -> str:
        """Return a path with a token that opens the door once."""
        self._token = new_key()
        return "/?" + urlencode({"token": self._token})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it at the door."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answer = self._stop(scope)
        if answer is not None:
            await answer(scope, receive, _guarded(send))
        else:
            await self._app(scope, receive, _guarded(send))

    def _stop(self, scope: Scope) -> Response | None:
        if self._peers is not None and not self._peers.welcome(scope.get("client")):
            return _refuse("This studio belongs to another user of this machine.")
        headers = Headers(scope=scope)
        if headers.get("host", "") != self._host:
            return _refuse("This studio answers to 127.0.0.1 only.")
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if token and scope["method"] == "GET":
            return self._enter(token[0])
        if not _is_key(_read(headers, self._cookie), self._key):
            return _refuse("Open the studio with the link that it printed when it started.")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        own = origin == f"http://{self._host}"
        if origin is not None and not own:
            return _refuse("This request comes from another page.")
        if scope["method"] in _READING:
            # A link on another page may lead here, but it gets no page of ours to show.
            allowed = site in (None, "same-origin", "none")
        else:
            allowed = own and site in (None, "same-origin")
        return None if allowed else _refuse("This request comes from another page.")

    def _enter(self, token: str) -> Response:
        if self._token is None or not _is_key(token, self._token):
            return _refuse("This link was used already. Start the studio again for a new one.")
        self._token = None
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(self._cookie, self._key, httponly=True, samesite="strict", path="/")
        return answer


def _read(headers: Headers, cookie: str) -> str:
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == cookie:
            return value
    return ""


def _is_key(given: str, key: str) -> bool:
    """Compare in constant time; as bytes, since texts that are not ASCII raise an error there."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), key.encode())


def _refuse(reason: str) -> Response:
    return PlainTextResponse(reason + "\n", status_code=403)


def _guarded(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            # What a page shows may be inside information: no copy of it stays on disk.
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return guarded
