"""For WSGI: a middleware that meters requests, and an application that answers with a page.

One line meters a service of Flask, each request at its rule::

    talea_metrics.wsgi.meter_flask(app)
"""

from collections.abc import Callable, Iterable, MutableMapping
from importlib import import_module
from typing import Any, Optional

from talea_metrics import _http
from talea_metrics._http import KEY
from talea_metrics._serve import make_wsgi_app as make_wsgi_app
from talea_metrics._talea import HttpRoute

Environment = MutableMapping[str, Any]
Application = Callable[[Environment, Callable[..., Any]], Iterable[bytes]]


class Middleware:
    """Meters the requests of a WSGI application.

    ``route`` is a function from the environment to the template of the route that takes the request, or
    None; without it all requests are ``_unmatched``. It is called when a request arrives. If it returns None or
    raises then, since a framework inside finds the route, the request is in flight as ``_unmatched``, and
    the function is called again at the head of the response. The other arguments are those of
    ``talea_metrics.http_meter``.

    A request is recorded once: complete when its body was read to the end, aborted if the server closed it
    before, panicked after an exception. Of several middlewares, also those of frameworks, the outer one records.
    """

    def __init__(
        self,
        app: Application,
        *,
        route: Optional[Callable[[Environment], Optional[str]]] = None,
        **options: Any,
    ) -> None:
        self._app = app
        self._route = route
        self._meter = _http.meter(**options)
        self._routes = _http.Routes(self._meter)

    def __call__(self, environ: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if KEY in environ and not environ[KEY].is_closed():
            return self._inside(environ, start_response)
        exchange = environ[KEY] = self._meter.arrived(
            environ["REQUEST_METHOD"],
            environ.get("SERVER_PROTOCOL") == "HTTP/1.0",
            environ.get("wsgi.url_scheme") == "https",
            _http.declared_length(environ.get("CONTENT_LENGTH")),
        )
        has_route = self._route is not None and not self._is_known(environ)

        def start(status: str, headers: Any, *exception: Any) -> Any:
            if has_route:
                self._enter(environ)
            exchange.head(int(status[:3]))
            if any(exception):
                # An application inside answers for an exception.
                exchange.failed_after_head()
            return start_response(status, headers, *exception)

        try:
            body = self._app(environ, start)
            file_wrapper = environ.get("wsgi.file_wrapper")
            if isinstance(file_wrapper, type) and isinstance(body, file_wrapper):
                # The server sends the file itself, by its type.
                exchange.body(0, True)
                return body
            return exchange.watch(body)
        except BaseException as error:
            if isinstance(error, Exception):
                exchange.failed()
            exchange.close()
            raise

    def _inside(self, environ: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """A request that another middleware records: this one may know the route."""
        if self._is_known(environ):
            return self._app(environ, start_response)

        def start(status: str, headers: Any, *exception: Any) -> Any:
            self._enter(environ)
            return start_response(status, headers, *exception)

        return self._app(environ, start)

    def _is_known(self, environ: Environment) -> bool:
        """Whether the route is known as the request arrives. It is in flight in any case, if there are routes."""
        if self._route is None:
            return False
        exchange = environ[KEY]
        try:
            template = self._route(environ)
        except Exception:
            template = None
        if template is None:
            exchange.wait()
        else:
            exchange.enter(self._routes[template])
        return template is not None

    def _enter(self, environ: Environment) -> None:
        template = self._route(environ) if self._route is not None else None
        if template is not None:
            environ[KEY].enter(self._routes[template])


def _failed(sender: Any, exception: Any = None, **_: Any) -> None:
    """Called with an exception that nothing in an application handles, before it is a response of status 500.

    Extensions such as flask-restful send this signal themselves, also for the errors of HTTP that they answer.
    """
    if not isinstance(exception, import_module("werkzeug.exceptions").HTTPException):
        exchange = import_module("flask").request.environ.get(KEY)
        if exchange is not None:
            exchange.failed()


def meter_flask(app: Any, **options: Any) -> None:
    """Meters a Flask application: each request at its rule, from before its functions ``before_request``.

    The arguments are those of ``talea_metrics.http_meter``.
    """
    middleware = Middleware(app.wsgi_app, **options)
    meter = middleware._meter
    # By the rule's id: rules of one path and one view differ by their methods. The rule is kept, so that no other
    # gets its id.
    routes: dict[int, tuple[HttpRoute, Any]] = {}

    def declared(rule: Any) -> tuple[HttpRoute, Any]:
        route = meter.route(rule.rule, sorted(rule.methods or ()))
        return routes.setdefault(id(rule), (route, rule))

    # Without a function ``before_request``: Flask asks of each whether it is async, which costs more than this.
    current: Callable[[], Any] = import_module("flask").request._get_current_object
    preprocess = app.preprocess_request

    def enter(*arguments: Any) -> Any:
        request = current()
        rule = request.url_rule
        exchange = request.environ.get(KEY)
        if rule is not None and exchange is not None:
            exchange.enter((routes.get(id(rule)) or declared(rule))[0])
        return preprocess(*arguments)

    import_module("flask").got_request_exception.connect(_failed)
    # With those that Flask has already, so that their series exist before the first request.
    for rule in app.url_map.iter_rules():
        declared(rule)
    app.preprocess_request = enter
    app.wsgi_app = middleware
