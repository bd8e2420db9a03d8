"""For ASGI: a middleware that meters requests, and an application that answers with a page.

One line meters a service of Starlette or FastAPI, each request at its route::

    app.add_middleware(talea_metrics.asgi.Middleware)
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional

from talea_metrics import _http
from talea_metrics._serve import Scope
from talea_metrics._serve import make_asgi_app as make_asgi_app
from talea_metrics._talea import AsgiMiddleware, HttpRoute, asgi_route
from talea_metrics.registry import _LOCK, REGISTRY, CollectorRegistry

Application = Callable[[Scope, Any, Any], Any]


class Middleware(AsgiMiddleware):
    """Meters the requests of an ASGI application.

    The routes of Starlette and FastAPI are read from the application when it gets its first message, so that
    each has its series before its first request, again at the first request, and again after a request that a
    route took which was added later. That one is ``_unmatched``, as all requests that no route takes. Other
    frameworks need ``route``: a function from the scope to the template of the route that takes the request,
    or None. It is called when a request arrives. If it returns None or raises then, since the framework finds the
    route, the request is in flight as ``_unmatched``, and the function is called again at the head of the
    response. The other arguments are those of ``talea_metrics.http_meter``.

    A request is recorded once: complete when the last piece of its response is sent, aborted if the
    client left or the application ended before, panicked after an exception, also if a layer inside answered
    before it raised the exception on. docs/reference/python.md has what it costs.
    """

    def __init__(
        self,
        app: Application,
        *,
        route: Optional[Callable[[Scope], Optional[str]]] = None,
        registry: CollectorRegistry = REGISTRY,
        convention: str = "prometheus",
        prefix: str = "",
        detailed: bool = False,
        buckets: Optional[Sequence[float]] = None,
        status_codes: bool = False,
        constant_labels: Optional[Mapping[str, str]] = None,
    ) -> None:
        self._meter = _http.meter(
            registry, convention, prefix, detailed, buckets, status_codes, constant_labels
        )
        self._routes = _http.Routes(self._meter)
        self._places: dict[int, _Places] = {}
        # Endpoints that no added route has.
        self._others: dict[int, Any] = {}
        self._begin(app if route is None else self._named(app, route), self._meter)

        async def call(scope: Scope, receive: Any, send: Any) -> None:
            await self(scope, receive, send)

        # Servers look at this: they take an application whose `__call__` is not async for one of ASGI 2. A
        # call of the middleware is that of its class.
        self.__dict__["__call__"] = call

    def _named(
        self, app: Application, route: Callable[[Scope], Optional[str]]
    ) -> Application:
        """The application, with a `send` that asks for the route before the head, if it is not known at arrival."""

        def named(scope: Scope, receive: Any, send: Any) -> Any:
            exchange = scope.get("talea.exchange")
            if exchange is None:
                return app(scope, receive, send)
            try:
                template = route(scope)
            except Exception:
                template = None
            if template is not None:
                exchange.enter(self._routes[template])
                return app(scope, receive, send)
            exchange.wait()

            def sending(message: Any) -> Any:
                if message["type"] == "http.response.start":
                    template = route(scope)
                    if template is not None:
                        exchange.enter(self._routes[template])
                return send(message)

            return app(scope, receive, sending)

        return named

    def _declare(self, application: Any) -> None:
        """Called with the application of a framework, before its first message and before its first request."""
        # Each route's application is read and replaced, by the middlewares of all applications that have it.
        with _LOCK:
            self._declare_routes("", getattr(application, "routes", ()))

    def _declare_added(self, endpoint: Any) -> None:
        """Called when no known route took a request, with the endpoint that the framework found."""
        if id(endpoint) not in self._others:
            before = self._count()
            self._declare(self._declared)
            if self._count() == before:
                # Such as that of a mount, whose routes did not match, or whose own middleware answered.
                self._others[id(endpoint)] = endpoint

    def _count(self) -> int:
        return sum(len(of.prefixes) for of in self._places.values())

    def _declare_routes(self, prefix: str, routes: Iterable[Any]) -> None:
        """Has each route say that it takes a request, before its own application runs."""
        for route in routes:
            inner = getattr(route, "routes", None)
            application = getattr(route, "app", None)
            if hasattr(route, "effective_route_contexts"):
                # An included router of FastAPI: what it has as a route is of that inclusion.
                contexts = [one.starlette_route or one for one in route.effective_route_contexts()]
                self._declare_routes(prefix, contexts)
            elif inner:
                self._declare_routes(prefix + getattr(route, "path", ""), inner)
            elif application is not None and hasattr(route, "path"):
                mounted, path, methods = prefix, _http.template(prefix, route), None
                if hasattr(route, "methods"):
                    methods = sorted(route.methods) if route.methods else None
                elif hasattr(route, "endpoint"):
                    # A WebSocket.
                    continue
                else:
                    # A mount of an application without routes, such as files.
                    mounted = prefix + route.path
                    path = f"{mounted}/{{path}}"
                of = self._places.setdefault(id(route), _Places(route))
                if mounted not in of.prefixes:
                    # Starlette adds HEAD to the methods of a GET; a route of FastAPI has its own alone.
                    has_own_head = hasattr(route, "response_model")
                    declared = self._meter.read_route(path, methods, has_own_head)
                    route.app = of.application_at(mounted, declared)


class _Places:
    """A route, and the prefixes below which it is mounted: a router can be mounted more than once."""

    def __init__(self, route: Any) -> None:
        # Kept, so that no other route gets its id.
        self._route = route
        self._application: Application = route.app
        self.prefixes: set[str] = set()
        self._declared: list[tuple[re.Pattern[str], HttpRoute]] = []

    def application_at(self, prefix: str, declared: HttpRoute) -> Application:
        """The application of the route, for this prefix and those before."""
        self.prefixes.add(prefix)
        pattern = re.sub(r"\\{.*?\\}", ".+", re.escape(prefix))
        self._declared.append((re.compile(pattern), declared))
        if len(self._declared) == 1:
            return asgi_route(self._application, declared)
        return self._enter

    def _enter(self, scope: Scope, receive: Any, send: Any) -> Any:
        exchange = scope.get("talea.exchange")
        if exchange is not None:
            root = scope.get("root_path", "")
            # Without the path of the server, below which the whole application is.
            mounted = root[len(scope.get("app_root_path", root)) :]
            found = (declared for pattern, declared in self._declared if pattern.fullmatch(mounted))
            exchange.enter_read(next(found, self._declared[-1][1]))
        return self._application(scope, receive, send)
