"""The middleware for WSGI and Django."""

import contextlib
import sys
from wsgiref.util import FileWrapper, setup_testing_defaults

import django
import flask
import flask.views
import pytest
import werkzeug.exceptions
from hypothesis import given, settings as hypothesis_settings, strategies as st
from django.conf import settings
from django.http import FileResponse, Http404, HttpResponse, StreamingHttpResponse
from django.urls import path

from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client

import talea_metrics
from talea_metrics.wsgi import Middleware, meter_flask
from test_http import in_flight, outcomes, series, statuses


def test_flask_is_metered_at_its_rules(registry):
    app = flask.Flask("shop")

    @app.get("/items/<int:item>")
    def show(item):
        assert in_flight(registry) == {("/items/<int:item>",): 1}
        return "hello"

    @app.post("/fail")
    def fail():
        raise RuntimeError("no")

    @app.get("/stream")
    def stream():
        return flask.Response(iter(["one", "two"]))

    meter_flask(app, registry=registry, detailed=True)
    client = app.test_client()
    assert client.get("/items/1").data == b"hello"
    assert client.post("/fail", data=b"12345", buffered=True).status_code == 500
    assert client.get("/stream").data == b"onetwo"
    left = client.get("/stream", buffered=False)
    next(iter(left.response))
    left.close()
    assert client.get("/none", buffered=True).status_code == 404
    assert client.put("/items/1", buffered=True).status_code == 405
    assert statuses(registry) == {
        ("GET", "/items/<int:item>", "2xx"): 1,
        ("POST", "/fail", "5xx"): 1,
        ("GET", "/stream", "2xx"): 2,
        ("_OTHER", "_unmatched", "4xx"): 2,
    }
    assert outcomes(registry)[("GET", "/stream", "aborted")] == 1
    panicked = {key: n for key, n in outcomes(registry).items() if key[2] == "panicked"}
    assert panicked == {("POST", "/fail", "panicked"): 1}
    assert in_flight(registry) == {}
    assert series(registry, "http_request_body_size_bytes_sum", "route") == {("/fail",): 5}
    sent = series(registry, "http_response_body_size_bytes_sum", "route")
    assert sent[("/stream",)] == len("onetwo") + len("one")


def test_rules_of_one_path_and_one_view_have_their_own_methods(registry):
    app = flask.Flask("shop")

    class Items(flask.views.MethodView):
        def get(self):
            return "hello"

        def post(self):
            return "added"

    view = Items.as_view("items")
    app.add_url_rule("/items/", view_func=view, methods=["GET"])
    app.add_url_rule("/items/", view_func=view, methods=["POST"])
    meter_flask(app, registry=registry)
    app.add_url_rule("/later/", view_func=view, methods=["GET"])
    app.add_url_rule("/later/", view_func=view, methods=["POST"])
    client = app.test_client()
    for path in ["/items/", "/later/"]:
        assert client.get(path).data == b"hello"
        assert client.post(path).data == b"added"
    assert statuses(registry) == {
        (method, path, "2xx"): 1 for method in ["GET", "POST"] for path in ["/items/", "/later/"]
    }


def counted(registry):
    """How often each route was counted, in whatever way."""
    found = {}
    for (route, *_), value in series(registry, "http_requests_total", "route", "status").items():
        found[route] = found.get(route, 0) + value
    return found


def test_of_several_middlewares_the_outer_one_records(registry):
    def shop(prefix):
        app = flask.Flask(prefix)
        app.add_url_rule(f"/{prefix}/<int:item>", view_func=lambda item: "hello", endpoint="show")
        meter_flask(app, registry=registry)
        return app

    twice, below = shop("twice"), shop("below")
    meter_flask(twice, registry=registry)
    mounted = DispatcherMiddleware(twice.wsgi_app, {"/mount": below})
    unknown = Middleware(mounted, registry=registry)
    named = Middleware(unknown, registry=registry, route=lambda environ: None)
    client = Client(named)
    for path, status in [("/twice/1", 200), ("/mount/below/2", 200), ("/none", 404)]:
        # Closed: Flask's request without a route is in a cycle of references until a garbage collection.
        with client.get(path) as response:
            assert response.status_code == status
    assert counted(registry) == {"/twice/<int:item>": 1, "/below/<int:item>": 1, "_unmatched": 1}
    assert in_flight(registry) == {}


def test_a_middleware_inside_may_know_the_route(registry):
    def app(environ, start_response):
        start_response("200 OK", [])
        return [b"hello"]

    inner = Middleware(app, registry=registry, route=lambda environ: "/known")
    assert Client(Middleware(inner, registry=registry)).get("/x").data == b"hello"
    assert counted(registry) == {"/known": 1}


def test_a_request_that_is_made_again_is_recorded_again(registry):
    def app(environ, start_response):
        if environ["PATH_INFO"] != "/error":
            raise RuntimeError("no")
        start_response("500 Internal Server Error", [])
        return [b"sorry"]

    metered = Middleware(app, registry=registry, route=lambda environ: environ["PATH_INFO"])

    def explained(environ, start_response):
        try:
            return metered(environ, start_response)
        except RuntimeError:
            return metered({**environ, "PATH_INFO": "/error"}, start_response)

    assert Client(explained).get("/x").data == b"sorry"
    found = {key[1:]: value for key, value in outcomes(registry).items()}
    assert found == {("/x", "panicked"): 1, ("/error", "complete"): 1}


def show(request, item):
    return HttpResponse("hello")


def fail(request):
    raise RuntimeError("no")


def missing(request):
    raise Http404


def stream(request):
    return StreamingHttpResponse(iter([b"one", b"two"]))


def broken_stream(request):
    def pieces():
        raise RuntimeError("no")
        yield

    return StreamingHttpResponse(pieces())


async def broken_later(request):
    async def pieces():
        yield b"one"
        raise RuntimeError("no")

    return StreamingHttpResponse(pieces())


def file(request):
    return FileResponse(open(__file__, "rb"))


async def later(request):
    return HttpResponse("later")


def environment(path):
    environ = {"PATH_INFO": path}
    setup_testing_defaults(environ)
    return environ


def broken_below(get_response):
    """A middleware with a fault."""

    def respond(request):
        if request.path == "/broken-below/":
            raise RuntimeError("no")
        return get_response(request)

    return respond


urlpatterns = [
    path("items/<int:item>/", show),
    path("fail/", fail),
    path("missing/", missing),
    path("stream/", stream),
    path("broken-stream/", broken_stream),
    path("broken-later/", broken_later),
    path("file/", file),
    path("later/", later),
]


def test_django_is_metered_at_its_routes(registry):
    settings.configure(
        # The second is as if it were there once.
        MIDDLEWARE=["talea_metrics.django.Middleware", "talea_metrics.django.Middleware", f"{__name__}.broken_below"],
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["*"],
        TALEA_HTTP={"registry": registry, "detailed": True},
        LOGGING_CONFIG=None,
    )
    django.setup()
    from django.core.handlers.wsgi import WSGIHandler
    from django.test import AsyncClient, Client

    client = Client(raise_request_exception=False)
    assert client.get("/items/1/").content == b"hello"
    assert client.get("/fail/").status_code == 500
    assert client.get("/broken-below/").status_code == 500
    assert client.get("/missing/").status_code == 404
    assert b"".join(client.get("/stream/").streaming_content) == b"onetwo"
    assert client.get("/none/").status_code == 404
    assert client.get("/later/").content == b"later"

    # Of a server that sends files itself, and one that does not.
    with open(__file__, "rb") as own:
        content = own.read()
    sent = environment("/file/")
    body = WSGIHandler()({**sent, "wsgi.file_wrapper": FileWrapper}, lambda *_: None)
    assert isinstance(body, FileWrapper)
    body.close()
    response = WSGIHandler()(sent, lambda *_: None)
    assert b"".join(response) == content
    response.close()
    assert series(registry, "http_response_body_size_bytes_sum", "route")[("/file/",)] == 2 * len(content)

    import asyncio

    assert asyncio.run(AsyncClient().get("/later/")).content == b"later"

    # The client of a server of WSGI gets a 500, and that of ASGI has the head by then.
    for response in [client.get("/broken-stream/"), asyncio.run(AsyncClient().get("/broken-stream/"))]:
        with pytest.raises(RuntimeError):
            list(response.streaming_content)
    # Django reads asynchronous pieces to their end before a server of WSGI sends one.
    with pytest.warns(Warning, match="consume asynchronous iterators"), pytest.raises(RuntimeError):
        list(client.get("/broken-later/"))
    found = statuses(registry)
    sent = [("/broken-stream/", "2xx"), ("/broken-stream/", "5xx"), ("/broken-later/", "2xx"), ("/broken-later/", "5xx")]
    assert [found.get(("GET", *key)) for key in sent] == [1, 1, None, 1]
    assert series(registry, "http_response_body_size_bytes_sum", "route").get(("/broken-later/",)) in (None, 0)
    found = {key[1:]: value for key, value in outcomes(registry).items()}
    assert found == {
        ("/items/<int:item>/", "complete"): 1,
        ("/fail/", "panicked"): 1,
        ("/missing/", "complete"): 1,
        ("/stream/", "complete"): 1,
        ("/broken-stream/", "panicked"): 2,
        ("/broken-later/", "panicked"): 1,
        ("/file/", "complete"): 2,
        ("/later/", "complete"): 2,
        ("_unmatched", "panicked"): 1,
        ("_unmatched", "complete"): 1,
    }
    assert in_flight(registry) == {}


@pytest.mark.parametrize("method", ["G(T", "", "é"])
def test_a_method_that_is_no_token_is_unknown(registry, method):
    def app(environ, start_response):
        start_response("204 No Content", [])
        return []

    metered = Middleware(app, registry=registry, route=lambda environ: "/x")
    list(metered({"REQUEST_METHOD": method}, lambda status, headers: None))
    assert outcomes(registry) == {("_OTHER", "/x", "complete"): 1}


@pytest.mark.parametrize("length", ["²", "9" * 30, "9" * 5000, "-1", "x", "", None])
def test_an_odd_length_is_none(registry, length):
    def app(environ, start_response):
        start_response("204 No Content", [])
        return []

    metered = Middleware(app, registry=registry, detailed=True)
    environ = {"REQUEST_METHOD": "GET", "CONTENT_LENGTH": length}
    body = metered(environ, lambda status, headers: None)
    assert list(body) == []
    body.close()
    assert sum(outcomes(registry).values()) == 1


@given(
    pieces=st.integers(0, 3),
    read=st.integers(0, 4),
    end=st.sampled_from(["reads", "closes", "forgets", "reads and closes", "raises", "exits"]),
)
@hypothesis_settings(max_examples=30, deadline=None)
def test_each_body_ends_once_however_it_is_read(pieces, read, end):
    registry = talea_metrics.CollectorRegistry(size=4 << 20)
    closed = []

    def app(environ, start_response):
        start_response("200 OK", [])
        try:
            for _ in range(pieces):
                yield b"x"
            if end == "raises":
                raise KeyError("no item")
            if end == "exits":
                raise SystemExit
        finally:
            closed.append(1)

    metered = Middleware(app, registry=registry, route=lambda environ: "/x")
    body = metered({"REQUEST_METHOD": "GET"}, lambda status, headers: None)
    got = []
    with contextlib.suppress(KeyError, SystemExit):
        for piece in body:
            got.append(piece)
            if len(got) == read and end != "reads":
                break
    is_read = end == "reads" or not 0 < read <= pieces
    if end in ("closes", "reads and closes"):
        body.close()
    if end == "raises" and is_read:
        expected = "panicked"
    elif end not in ("raises", "exits") and is_read:
        expected = "complete"
    else:
        expected = "aborted"
    del body
    assert closed == [1]
    assert {key[1:]: value for key, value in outcomes(registry).items()} == {("/x", expected): 1}
    assert in_flight(registry) == {}


def routed(environ):
    """The route as a framework inside leaves it; an error before it has."""
    return environ["found"]


@pytest.mark.parametrize(
    ("route", "before", "after"),
    [
        (lambda environ: "/known", "/known", "/known"),
        (routed, "_unmatched", "/later"),
        (lambda environ: environ.get("found"), "_unmatched", "/later"),
        (lambda environ: None, "_unmatched", "/later"),
    ],
)
def test_a_request_is_in_flight_before_its_head(registry, route, before, after):
    def app(environ, start_response):
        assert in_flight(registry) == {(before,): 1}
        environ["found"] = "/later"
        start_response("200 OK", [])
        assert in_flight(registry) == {(after,): 1}
        return [b"hello"]

    # Those around and inside do not count it a second time.
    inside = Middleware(app, registry=registry, route=lambda environ: environ.get("found"))
    assert Client(Middleware(inside, registry=registry, route=route)).get("/").data == b"hello"
    assert counted(registry) == {after: 1}
    assert in_flight(registry) == {}


def test_a_head_in_place_of_another_one_is_a_failure(registry):
    def app(environ, start_response):
        start_response("200 OK", [])
        try:
            raise ValueError
        except ValueError:
            start_response("503 Service Unavailable", [], sys.exc_info())
        return [b"an error"]

    def late(environ, start_response):
        start_response("200 OK", [])
        start_response("404 Not Found", [], None)
        yield b"nothing"

    for inside in (app, late):
        metered = Middleware(inside, registry=registry, route=lambda environ: "/x")
        body = metered({"REQUEST_METHOD": "GET"}, lambda *_: None)
        list(body)
        body.close()
    assert outcomes(registry) == {("GET", "/x", "panicked"): 1, ("GET", "/x", "complete"): 1}
    assert statuses(registry) == {("GET", "/x", "5xx"): 1, ("GET", "/x", "4xx"): 1}
    assert in_flight(registry) == {}


@pytest.mark.parametrize(
    ("error", "outcome"), [(ValueError(), "panicked"), (werkzeug.exceptions.BadGateway(), "complete")]
)
def test_an_exception_is_a_failure_also_if_an_extension_of_flask_answers_for_it(registry, error, outcome):
    app = flask.Flask("shop")
    meter_flask(app, registry=registry)

    # As flask-restful does.
    def answered(exception):
        flask.got_request_exception.send(app, exception=exception)
        return flask.Response("an error", status=500)

    app.handle_exception = app.handle_user_exception = answered

    @app.get("/fail")
    def fail():
        raise error

    with Client(app.wsgi_app).get("/fail") as response:
        assert (response.status_code, response.data) == (500, b"an error")
    assert outcomes(registry) == {("GET", "/fail", outcome): 1}
