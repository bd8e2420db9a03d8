"""Servers of pages: a thread of this process, and applications for WSGI and ASGI servers."""

import os
import socket
import ssl
import threading
import traceback
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import ThreadingMixIn
from typing import Any, Optional
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIServer

from talea_metrics import _page
from talea_metrics.registry import REGISTRY

Headers = list[tuple[str, str]]


def respond(
    registry: Any, method: str, query: str, accept: str, accept_encoding: str, compress: bool
) -> tuple[str, Headers, bytes]:
    """Status, headers and body of the answer to a request for a page."""
    if method == "OPTIONS":
        return "200 OK", [("Allow", "OPTIONS,GET,HEAD")], b""
    if method not in ("GET", "HEAD"):
        return "405 Method Not Allowed", [("Allow", "OPTIONS,GET,HEAD")], b"metrics are read by GET\n"
    status, headers, body = _page._bake_output(
        registry, accept, accept_encoding, parse_qs(query), not compress
    )
    return status, headers, b"" if method == "HEAD" else body


def make_wsgi_app(
    registry: Any = REGISTRY, disable_compression: bool = False
) -> Callable[[MutableMapping[str, Any], Callable[..., Any]], Iterable[bytes]]:
    """A WSGI application that answers with the page of a registry."""

    def application(
        environ: MutableMapping[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        if environ.get("PATH_INFO") == "/favicon.ico":
            start_response("200 OK", [])
            return [b""]
        status, headers, body = respond(
            registry,
            environ["REQUEST_METHOD"],
            environ.get("QUERY_STRING", ""),
            environ.get("HTTP_ACCEPT") or "",
            environ.get("HTTP_ACCEPT_ENCODING") or "",
            not disable_compression,
        )
        start_response(status, headers)
        return [body]

    return application


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


def make_asgi_app(
    registry: Any = REGISTRY, disable_compression: bool = False
) -> Callable[[Scope, Any, Any], Awaitable[None]]:
    """An ASGI application that answers with the page of a registry."""

    async def application(scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise ValueError(f"metrics are read over HTTP, and this is {scope['type']!r}")

        def header(wanted: bytes) -> str:
            found = (value for name, value in scope["headers"] if name.lower() == wanted)
            return ",".join(value.decode("latin-1") for value in found)

        status, headers, body = respond(
            registry,
            scope.get("method", "GET"),
            scope.get("query_string", b"").decode("latin-1"),
            header(b"accept"),
            header(b"accept-encoding"),
            not disable_compression,
        )
        await receive()
        encoded = [(name.encode(), value.encode()) for name, value in headers]
        await send({"type": "http.response.start", "status": int(status[:3]), "headers": encoded})
        await send({"type": "http.response.body", "body": body})

    return application


class MetricsHandler(BaseHTTPRequestHandler):
    """A request handler of ``http.server`` that answers with the page of its class's registry."""

    registry: Any = REGISTRY
    # A client that stalls holds a thread no longer, in seconds.
    timeout = 30

    def _answer(self) -> None:
        query = self.path.partition("?")[2]
        accept, encoding = self.headers.get("Accept", ""), self.headers.get("Accept-Encoding", "")
        try:
            status, headers, body = respond(self.registry, self.command, query, accept, encoding, True)
        except Exception:
            # Raised by a collector or the function of a gauge: an OSError too is not the fault of the client.
            traceback.print_exc()
            status, headers, body = "500 Internal Server Error", [], b"a metric raised; see the log\n"
        self.send_response(int(status[:3]))
        for name, value in headers:
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_HEAD = do_OPTIONS = do_POST = do_PUT = do_DELETE = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a scrape is not worth a line."""

    @classmethod
    def factory(cls, registry: Any) -> type["MetricsHandler"]:
        """A handler class for this registry."""
        return type(cls.__name__, (cls,), {"registry": registry})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    context: Optional[ssl.SSLContext] = None

    def shutdown(self) -> None:
        """Ends the server, and gives the port back."""
        super().shutdown()
        self.server_close()

    def finish_request(self, request: Any, client_address: Any) -> None:
        # In the thread of the connection, so that a handshake that stalls does not hold up others.
        if self.context is not None:
            request.settimeout(MetricsHandler.timeout)
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing for a client that left or does not speak TLS."""
        import sys

        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class ThreadingWSGIServer(ThreadingMixIn, WSGIServer):
    """A server of WSGI with a thread for each request."""

    daemon_threads = True


def start_http_server(
    port: int,
    addr: str = "0.0.0.0",
    registry: Any = REGISTRY,
    certfile: Optional[str] = None,
    keyfile: Optional[str] = None,
    client_cafile: Optional[str] = None,
    client_capath: Optional[str] = None,
    protocol: int = ssl.PROTOCOL_TLS_SERVER,
    client_auth_required: bool = False,
    tls_min_version: Optional[ssl.TLSVersion] = None,
    tls_max_version: Optional[ssl.TLSVersion] = None,
) -> tuple[ThreadingHTTPServer, threading.Thread]:
    """Serves the page of a registry on a port, from a daemon thread. Port 0 takes a free one.

    With ``certfile`` and ``keyfile`` it speaks TLS; with ``client_auth_required`` clients need a
    certificate of an authority in ``client_cafile`` or ``client_capath``. ``tls_min_version`` and
    ``tls_max_version`` restrict the versions of TLS; by default they are those of ``ssl``. Returns the server, whose
    ``shutdown`` ends it, and its thread. A child made by ``fork`` has neither the thread nor the port.
    """
    context = None
    if (certfile is None) != (keyfile is None):
        raise ValueError("certfile and keyfile belong together, and one of them was given")
    if certfile is not None:
        context = ssl.SSLContext(protocol)
        if tls_min_version is not None:
            context.minimum_version = tls_min_version
        if tls_max_version is not None:
            context.maximum_version = tls_max_version
        if client_cafile is not None or client_capath is not None:
            context.load_verify_locations(client_cafile, client_capath)
        elif client_auth_required:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        if client_auth_required:
            context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(certfile, keyfile)
    family, *_ = socket.getaddrinfo(addr, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    kind = type("Server", (_Server,), {"address_family": family, "context": context})
    server = kind((addr, port), MetricsHandler.factory(registry))
    _SERVERS.add(server)
    thread = threading.Thread(target=server.serve_forever, name="talea-metrics", daemon=True)
    thread.start()
    return server, thread


_SERVERS: "weakref.WeakSet[_Server]" = weakref.WeakSet()


def _after_fork() -> None:
    # A child has none of these threads, and the port would stay taken when its parent has ended.
    for server in _SERVERS:
        server.socket.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


start_wsgi_server = start_http_server
