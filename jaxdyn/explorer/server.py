"""The server of ``jaxdyn explore``: the page of one claim on this machine, with access control.

On the loopback address, everyone on this machine has access, but other websites have none: requests must name this machine (not a
domain that was made to resolve to it), and messages must come from the page itself. On any other address, a token is needed.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import secrets
import socket
from collections.abc import Callable
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode, urlsplit

from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.errors import UsageError, missing, shown
from jaxdyn.explorer.processes import LIMIT, Recipe, Relay, Workers
from jaxdyn.explorer.runs import Explorer, Move
from jaxdyn.explorer.view import script, style

try:
    import tornado.httpserver
    import tornado.web
    import tornado.websocket
except ImportError:
    raise missing("explore", "tornado", "explore") from None

__all__ = ["PORT", "Server", "is_loopback", "listen"]

PORT = 8732
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
DENIED = "403: this page needs the token that `jaxdyn explore` printed with its address.\n"


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port, on the default port or, if that is in use, on any free one.

    Raises:
        UsageError: the port is in use or not allowed, or this machine does not have the address.
    """
    if port is not None and port > 65535:
        raise UsageError(f"--port {port} is not allowed: it is a whole number from 0 (any free port) to 65535")
    host = "127.0.0.1" if host == "localhost" else host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    elsewhere = f"--host {shown(host)} is not allowed: it is an address of this machine, such as 127.0.0.1"
    try:
        socket.getaddrinfo(host, None, family)
    except (OSError, ValueError):  # ValueError: not even the form of a name
        raise UsageError(elsewhere) from None
    for number in [PORT, 0] if port is None else [port]:
        try:
            listening = socket.create_server((host, number), family=family)
            listening.setblocking(False)
            return listening
        except OSError as error:
            reason = error
    if reason.errno == errno.EADDRNOTAVAIL:
        raise UsageError(elsewhere)
    words = "another program listens there" if reason.errno == errno.EADDRINUSE else reason.strerror or str(reason)
    raise UsageError(f"--port {PORT if port is None else port} is not allowed: {words}; without --port a free one is taken")


class Server:
    """Serves a claim's page on an address.

    Args:
        explorer: introduces the claim, which other processes find by its id.
        start: the knobs' first positions.
        host: the address; unless it is a loopback address, a token is made.
        port: the port; None: the default port, or any free one.
        limit: seconds without a sign of progress after which a run is ended.
    """

    def __init__(
        self, explorer: Explorer, start: Move, host: str = "127.0.0.1", port: int | None = None, limit: float = LIMIT
    ) -> None:
        self.explorer, self.start, self.host, self.limit = explorer, start, host, limit
        self.token = "" if is_loopback(host) else secrets.token_urlsafe(24)
        self.listening = listen(host, port)
        self.workers = Workers(Recipe.of(explorer, start))
        self._end: Callable[[], Any] | None = None
        self.port = int(self.listening.getsockname()[1])

    @property
    def url(self) -> str:
        """The page's URL, including its token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/" + (f"?{urlencode({'token': self.token})}" if self.token else "")

    def admits(self, request: Any) -> bool:
        """Whether a request is allowed: it has the token, or, without a token, it names this machine."""
        if self.token:
            given = request.query_arguments.get("token", [b""])[-1]
            return secrets.compare_digest(given, self.token.encode())
        try:
            return is_loopback(urlsplit(f"//{request.host}").hostname or "")
        except ValueError:  # "[::1"
            return False

    def serve(self, ready: Callable[[], None] = lambda: None) -> None:
        """Answer requests until :meth:`close`; ``ready`` is called when the server is ready."""

        async def run() -> None:
            ended, loop = asyncio.Event(), asyncio.get_running_loop()
            about = {"server": self}
            routes: list[Any] = [(r"/", _Page, about), (r"/explore\.js", _Script, about), (r"/talk", _Socket, about)]
            served = tornado.httpserver.HTTPServer(
                tornado.web.Application(routes, websocket_ping_interval=20, log_function=_unlogged)
            )
            served.add_socket(self.listening)
            self._end = lambda: loop.call_soon_threadsafe(ended.set)
            ready()
            await ended.wait()
            served.stop()
            await served.close_all_connections()

        asyncio.run(run())

    def close(self) -> None:
        """End the server and its processes, from any thread."""
        self.workers.close()
        if self._end is not None:
            self._end()


def _unlogged(handler: tornado.web.RequestHandler) -> None:
    """Log no request that is refused: its address has the token."""


def _without_token(request: Any) -> None:
    """Cut the query off the address of a request that tornado shows with an exception."""
    request.uri = request.path


class _Page(tornado.web.RequestHandler):
    """The page, or a sentence for requests that are not allowed."""

    def initialize(self, server: Server) -> None:
        self.server = server
        _without_token(self.request)

    def set_default_headers(self) -> None:
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        if not self.server.admits(self.request):
            self.set_status(403)
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(DENIED)

    def get(self) -> None:
        text = (files("jaxdyn.explorer") / "page.html").read_text(encoding="utf-8")
        query = f"?{urlencode({'token': self.server.token})}" if self.server.token else ""
        self.finish(text.replace("/*style*/", style()).replace("{id}", self.server.explorer.claim.id).replace("{query}", query))


class _Script(_Page):
    """The front end's script."""

    def get(self) -> None:
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.finish(script())


class _Socket(tornado.websocket.WebSocketHandler):
    """The connection to one page."""

    def initialize(self, server: Server) -> None:
        self.server = server
        _without_token(self.request)
        self.relay: Relay | None = None

    def check_origin(self, origin: str) -> bool:
        """Whether the page itself opened the connection: tornado's own check compares the origin with the requested address."""
        return self.server.admits(self.request) and super().check_origin(origin)

    async def get(self, *args: Any, **kwargs: Any) -> None:
        if not self.server.admits(self.request):
            self.set_status(403)
            await self.finish(DENIED)
            return
        await super().get(*args, **kwargs)

    def open(self, *args: str, **kwargs: str) -> None:
        loop = asyncio.get_running_loop()

        def send(content: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(self._write, json.dumps(content))

        server = self.server
        self.relay = Relay(server.explorer, send, server.start, server.workers, server.limit)

    def _write(self, text: str) -> None:
        if self.ws_connection is not None and not self.ws_connection.is_closing():
            self.write_message(text)

    def on_message(self, message: str | bytes) -> None:
        try:
            content = parse_json(message)
        except ValueError:
            return
        if self.relay is not None:
            self.relay.heard(content)

    def on_close(self) -> None:
        if self.relay is not None:
            self.relay.close()
