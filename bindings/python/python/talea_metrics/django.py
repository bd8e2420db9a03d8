"""For Django: a middleware that meters requests, each at the route that its resolver matched.

One line of the settings installs it, before all others::

    MIDDLEWARE = ["talea_metrics.django.Middleware", ...]

The setting ``TALEA_HTTP`` is a dict with the arguments of ``talea_metrics.http_meter``.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any

from talea_metrics import _http
from talea_metrics._http import KEY
from talea_metrics._talea import HttpExchange, HttpMeter


def _failed(request: Any = None, **_: Any) -> None:
    """Called with an exception that nothing in the project handles, before it is a response of status 500."""
    exchange = getattr(request, "_talea_exchange", None)
    if exchange is not None:
        exchange.failed()


class Middleware:
    """Meters the requests of a Django project, synchronous and asynchronous."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        settings = import_module("django.conf").settings
        self._get_response = get_response
        self._meter: HttpMeter = _http.meter(**getattr(settings, "TALEA_HTTP", {}))
        self._routes = _http.Routes(self._meter)
        import_module("django.core.signals").got_request_exception.connect(_failed, dispatch_uid=KEY)
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            from asgiref.sync import markcoroutinefunction

            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        # A middleware of WSGI or ASGI around the project, or this one in the settings twice.
        outer = getattr(request, "scope", request.META).get(KEY)
        if outer is not None and not outer.is_closed():
            request._talea_exchange = outer
            return self._get_response(request)
        exchange = self._arrived(request)
        if self._is_async:
            return self._answered(exchange, request)
        try:
            response = self._get_response(request)
        except BaseException as error:
            self._broke(exchange, error)
            raise
        return self._watched(exchange, request, response)

    async def _answered(self, exchange: HttpExchange, request: Any) -> Any:
        try:
            response = await self._get_response(request)
        except BaseException as error:
            self._broke(exchange, error)
            raise
        return self._watched(exchange, request, response)

    def _arrived(self, request: Any) -> HttpExchange:
        exchange = self._meter.arrived(
            request.method,
            request.META.get("SERVER_PROTOCOL") == "HTTP/1.0",
            request.is_secure(),
            _http.declared_length(request.META.get("CONTENT_LENGTH")),
        )
        request._talea_exchange = getattr(request, "scope", request.META)[KEY] = exchange
        return exchange

    def process_view(self, request: Any, view: Any, args: Any, kwargs: Any) -> None:
        """Called by Django once the resolver has matched."""
        template = "/" + (request.resolver_match.route or "")
        request._talea_exchange.enter(self._routes[template])

    def _broke(self, exchange: HttpExchange, error: BaseException) -> None:
        if isinstance(error, Exception):
            exchange.failed()
        exchange.close()

    def _watched(self, exchange: HttpExchange, request: Any, response: Any) -> Any:
        exchange.head(response.status_code)
        is_asgi = hasattr(request, "scope")
        if response.streaming and is_asgi:
            # Of ASGI, the head is on its way before the first piece. A server of WSGI sends both together.
            exchange.body(0, False)
        if not response.streaming:
            exchange.body(len(response.content), True)
        elif getattr(response, "file_to_stream", None) and "wsgi.file_wrapper" in request.META:
            # The server sends the file itself. Django hands the file over as long as the pieces are its own.
            exchange.body(_http.declared_length(response.get("Content-Length")), True)
        elif response.is_async:
            response.streaming_content = self._async_pieces(exchange, response.streaming_content, is_asgi)
        else:
            response.streaming_content = self._pieces(exchange, response.streaming_content, not is_asgi)
        # A stream that the server does not read to its end was aborted.
        response._resource_closers.append(exchange.close)
        return response

    # Of a stream that is not of the server's kind, Django reads all before the server sends a piece.

    def _pieces(
        self, exchange: HttpExchange, pieces: Iterator[bytes], is_sent: bool
    ) -> Iterator[bytes]:
        unsent = 0
        try:
            for piece in pieces:
                if is_sent:
                    exchange.body(len(piece), False)
                else:
                    unsent += len(piece)
                yield piece
        except Exception:
            exchange.failed()
            raise
        exchange.body(unsent, True)

    async def _async_pieces(
        self, exchange: HttpExchange, pieces: AsyncIterator[bytes], is_sent: bool
    ) -> AsyncIterator[bytes]:
        unsent = 0
        try:
            async for piece in pieces:
                if is_sent:
                    exchange.body(len(piece), False)
                else:
                    unsent += len(piece)
                yield piece
        except Exception:
            exchange.failed()
            raise
        exchange.body(unsent, True)
