"""For ASGI: a middleware that meters requests, and an application that answers with a page.

One line meters a service of Starlette or FastAPI, each request at its route::

    app.add_middleware(talea.asgi.Middleware)
"""

from collections.abc import Callable, Iterable
from typing import Any, Optional

from talea import _http
from talea._serve import Receive, Scope, Send
from talea._serve import make_asgi_app as make_asgi_app
from talea._talea import HttpExchange, HttpRoute

_KEY = "talea.exchange"

Application = Callable[[Scope, Any, Any], Any]


class Middleware:
    """Meters the requests of an ASGI application.

    The routes of Starlette and FastAPI are read from the application when it gets its first message: each
    has its series before its first request. Requests that no route takes are ``_unmatched``. Other
    frameworks need ``route``: a function from the scope to the template of the route that took the request,
    or None, called at the head of the response. The other arguments are those of ``talea.http_meter``.

    A request is recorded once: complete when the last piece of its response is sent, aborted if the
    client left or the application ended before, panicked after an exception. It costs two to three
    microseconds.
    """

    def __init__(
        self,
        app: Application,
        *,
        route: Optional[Callable[[Scope], Optional[str]]] = None,
        **options: Any,
    ) -> None:
        self._app = app
        self._route = route
        self._meter = _http.meter(**options)
        self._prepared: Any = None
        self._routes: dict[str, HttpRoute] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        application = scope.get("app")
        if application is not None and application is not self._prepared:
            self._prepared = application
            self._declare("", getattr(application, "routes", ()))
        if scope["type"] != "http" or _KEY in scope:
            await self._app(scope, receive, send)
            return
        exchange = scope[_KEY] = self._meter.asgi(scope, send)
        sender: Any = exchange if self._route is None else self._named(exchange, scope)
        try:
            await self._app(scope, receive, sender)
        except Exception:
            exchange.failed()
            raise
        finally:
            exchange.close()

    def _named(self, exchange: HttpExchange, scope: Scope) -> Callable[[Any], Any]:
        """A `send` that asks for the route before the head of the response."""
        assert self._route is not None
        find = self._route

        def send(message: Any) -> Any:
            if message["type"] == "http.response.start":
                template = find(scope)
                if template is not None:
                    exchange.enter(self._known(template))
            return exchange(message)

        return send

    def _known(self, template: str) -> HttpRoute:
        route = self._routes.get(template)
        if route is None:
            route = self._routes[template] = self._meter.route(template, None)
        return route

    def _declare(self, prefix: str, routes: Iterable[Any]) -> None:
        """Has each route say that it takes a request, before its own application runs."""
        for route in routes:
            inner = getattr(route, "routes", None)
            application = getattr(route, "app", None)
            if hasattr(route, "effective_route_contexts"):
                # An included router of FastAPI: what it has as a route is of that inclusion.
                contexts = route.effective_route_contexts()
                self._declare(prefix, [one.starlette_route or one for one in contexts])
            elif inner:
                self._declare(prefix + getattr(route, "path", ""), inner)
            elif application is not None and hasattr(route, "path"):
                if hasattr(route, "methods"):
                    methods = sorted(route.methods) if route.methods else None
                    declared = self._meter.route(_http.template(prefix, route), methods)
                elif hasattr(route, "endpoint"):
                    # A WebSocket.
                    continue
                else:
                    # A mount of an application without routes, such as files.
                    declared = self._meter.route(f"{prefix}{route.path}/{{path}}", None)
                route.app = _entering(application, declared)


def _entering(application: Application, route: HttpRoute) -> Application:
    def enter(scope: Scope, receive: Any, send: Any) -> Any:
        exchange = scope.get(_KEY)
        if exchange is not None:
            exchange.enter(route)
        # The coroutine of the application, not one around it.
        return application(scope, receive, send)

    return enter
