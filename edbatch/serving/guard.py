"""Who may ask: requests that name another host, or have no token, are refused before anything else is looked at."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

LOCAL = ("localhost", "127.0.0.1", "::1")


class Guard:
    """Passes on requests to one of the hosts (`*`: any) that bring the token, if there is one; all for `/health`."""

    def __init__(self, application: ASGIApp, hosts: Collection[str] = LOCAL, token: bytes | None = None) -> None:
        self._application, self._hosts, self._token = application, frozenset(hosts), token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        application = self._application
        if scope["type"] == "http":
            request = Request(scope)
            try:
                self._check(request)
            except HTTPException as error:
                application = await refused(request, error)
        await application(scope, receive, send)

    def _check(self, request: Request) -> None:
        headers = request.headers
        if "content-length" in headers and "transfer-encoding" in headers:  # a proxy may believe the other one
            raise HTTPException(400, "Content-Length and Transfer-Encoding; expected one of them")
        if request.scope["path"] == "/health":  # its `url` would be made with the host
            return
        host = ",".join(headers.getlist("host"))
        if "*" not in self._hosts and not self._serves(host_name(host)):
            raise HTTPException(421, f"Host: {host}; expected one that is served (see --allow-host)")
        found = ",".join(headers.getlist("authorization")).encode("latin-1")
        if self._token is not None and not hmac.compare_digest(found, b"Bearer " + self._token):
            raise HTTPException(401, "expected Authorization: Bearer and a token", {"WWW-Authenticate": "Bearer"})

    def _serves(self, name: str) -> bool:
        """Whether a name is one of those; a server at all addresses, 0.0.0.0, is known by any address."""
        return name in self._hosts or (not self._hosts.isdisjoint(("0.0.0.0", "::")) and _is_address(name))


def host_name(host: str) -> str:
    """The name or address in a `Host` header, without its port; nothing if it is none."""
    try:
        return "" if set(host) & set("/?#@\\,") else (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def failed(status: int, message: str, headers: Mapping[str, str] | None = None, **more: str) -> Response:
    """A response that tells what is wrong: all are of this form."""
    headers = {"Retry-After": "1"} if status == 503 else headers
    said = message.encode("utf-8", "replace").decode()  # what is no Unicode cannot be sent
    return Response(msgspec.json.encode({"error": said} | more), status, headers, "application/json")


async def refused(request: Request, error: Exception) -> Response:
    """A refusal before the body is read: the connection is closed."""
    assert isinstance(error, HTTPException)
    message, headers = error.detail, dict(error.headers or {})
    if error.status_code == 404:
        message = f"{request.scope['path']}: there is only /, /health and /metrics"
    elif "Allow" in headers:
        headers["Allow"] = ", ".join(sorted(headers["Allow"].split(", ")))  # in the order of a set
        message = f"{request.method}: expected {headers['Allow']}"
    return failed(error.status_code, message, headers | {"Connection": "close"})


def _is_address(name: str) -> bool:
    try:
        return bool(ip_address(name))
    except ValueError:
        return False
