"""The middleware, called as servers call it."""

import asyncio
import contextlib
import gc
import types
import weakref

import pytest
from fastapi import APIRouter, FastAPI, HTTPException
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute

import talea_metrics
from talea_metrics.asgi import Middleware


def request(app, path, method="GET", receive=None, take=None, root_path=""):
    """Sends a request of ASGI, and returns the status and the body of the response."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": root_path,
        "headers": [(b"host", b"x"), (b"content-length", b"7")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sent = []

    async def body():
        return {"type": "http.request", "body": b"1234567", "more_body": False}

    async def keep(message):
        sent.append(message)
        if take:
            take(message)

    async def run():
        await app(scope, receive or body, keep)

    try:
        asyncio.run(run())
    finally:
        request.sent = sent
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


async def lifespan(app):
    """Starts and ends an application."""
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive():
        return next(messages)

    async def send(message):
        pass

    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)


def series(registry, name, *keys):
    """The values of a metric that are not zero, by the values of labels."""
    return {
        tuple(sample.labels.get(key) for key in keys): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name and sample.value
    }


def outcomes(registry):
    return series(registry, "http_request_outcomes_total", "method", "route", "outcome")


def statuses(registry):
    return series(registry, "http_requests_total", "method", "route", "status")


def in_flight(registry):
    return series(registry, "http_requests_in_flight", "route")


def test_starlette_is_metered_at_its_routes(registry):
    background = []

    async def show(request):
        assert in_flight(registry) == {("/items/{id}",): 1}
        task = BackgroundTask(lambda: background.append(in_flight(registry)))
        return PlainTextResponse("hello", background=task)

    async def fail(request):
        raise RuntimeError("no")

    routes = [
        Route("/items/{id:int}", show),
        Route("/fail", fail, methods=["POST"]),
        Mount("/sub", routes=[Route("/x/{y}", show)], name="sub"),
    ]
    app = Starlette(routes=routes)
    app.add_middleware(Middleware, registry=registry)
    with pytest.raises(AssertionError):
        request(app, "/sub/x/1")
    assert request(app, "/items/1") == (200, b"hello")
    assert request(app, "/items/1", "HEAD")[0] == 200
    assert background == [{}, {}], "a request has ended before its background task runs"
    with pytest.raises(RuntimeError):
        request(app, "/fail", "POST")
    assert request.sent[0]["status"] == 500
    assert request(app, "/items/none")[0] == 404
    assert request(app, "/items/1", "PATCH")[0] == 405
    assert outcomes(registry) == {
        ("GET", "/sub/x/{y}", "panicked"): 1,
        ("GET", "/items/{id}", "complete"): 2,
        ("POST", "/fail", "panicked"): 1,
        ("_OTHER", "_unmatched", "complete"): 2,
    }
    assert statuses(registry) == {
        ("GET", "/sub/x/{y}", "5xx"): 1,
        ("GET", "/items/{id}", "2xx"): 2,
        ("POST", "/fail", "5xx"): 1,
        ("_OTHER", "_unmatched", "4xx"): 2,
    }
    assert in_flight(registry) == {}


def test_series_exist_before_the_first_request(registry):
    app = Starlette(routes=[Route("/items/{id}", lambda request: None)])
    app.add_middleware(Middleware, registry=registry)
    asyncio.run(lifespan(app))
    labels = {"method": "GET", "route": "/items/{id}", "status": "5xx"}
    assert registry.get_sample_value("http_requests_total", labels) == 0


def test_fastapi_is_metered_at_its_routes(registry):
    app = FastAPI()
    router = APIRouter(prefix="/items")

    @router.get("/{item_id}")
    async def show(item_id: int) -> str:
        if item_id == 0:
            raise HTTPException(418)
        return "hello"

    @router.post("/")
    def add() -> str:
        return "added"

    app.include_router(router)
    app.add_middleware(Middleware, registry=registry)
    assert request(app, "/items/1") == (200, b'"hello"')
    assert request(app, "/items/0")[0] == 418
    assert request(app, "/items/x")[0] == 422
    assert request(app, "/items/", "POST")[0] == 200
    assert statuses(registry) == {
        ("GET", "/items/{item_id}", "2xx"): 1,
        ("GET", "/items/{item_id}", "4xx"): 2,
        ("POST", "/items/", "2xx"): 1,
    }


def test_streams_end_with_their_last_piece(registry):
    seen = []

    async def pieces():
        for piece in [b"one", b"two"]:
            seen.append(in_flight(registry))
            yield piece

    async def broken():
        yield b"one"
        raise RuntimeError("no")

    async def whole(request):
        return StreamingResponse(pieces())

    async def half(request):
        return StreamingResponse(broken())

    app = Starlette(routes=[Route("/whole", whole), Route("/half", half)])
    app.add_middleware(Middleware, registry=registry, detailed=True)
    assert request(app, "/whole") == (200, b"onetwo")
    assert seen == [{("/whole",): 1}] * 2
    with pytest.raises(Exception):
        request(app, "/half")

    def leave(message):
        if message.get("body") == b"one":
            raise OSError("the client left")

    with pytest.raises(Exception):
        request(app, "/whole", take=leave)
    found = outcomes(registry)
    assert found[("GET", "/whole", "complete")] == 1
    assert found[("GET", "/half", "panicked")] == 1
    assert sum(found.values()) == 3 and in_flight(registry) == {}
    sent = series(registry, "http_response_body_size_bytes_sum", "route")
    assert sent[("/half",)] == 3
    received = series(registry, "http_request_body_size_bytes_sum", "route")
    assert received == {("/whole",): 14, ("/half",): 7}


def test_a_cancelled_request_is_aborted(registry):
    async def wait(request):
        await asyncio.Event().wait()

    app = Starlette(routes=[Route("/wait", wait)])
    app.add_middleware(Middleware, registry=registry)

    async def run():
        scope = {"type": "http", "method": "GET", "path": "/wait", "headers": [], "root_path": ""}
        task = asyncio.create_task(app(scope, None, None))
        while not in_flight(registry):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert outcomes(registry) == {("GET", "/wait", "aborted"): 1}
    assert in_flight(registry) == {}


def test_other_frameworks_name_their_routes(registry):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    metered = Middleware(app, route=lambda scope: "/known" if "k" in scope["path"] else None, registry=registry)
    request(metered, "/k")
    request(metered, "/x")
    found = {key[1]: value for key, value in outcomes(registry).items()}
    assert found == {"/known": 1, "_unmatched": 1}


@pytest.mark.parametrize(
    ("convention", "counter", "labels"),
    [
        ("instrumentator", "http_requests_total", {"handler": "/", "method": "GET", "status": "2xx"}),
        (
            "starlette_exporter",
            "starlette_requests_total",
            {"app_name": "starlette", "method": "GET", "path": "/", "status_code": "200"},
        ),
        (
            "opentelemetry",
            "http_server_request_duration_seconds_count",
            {
                "http_request_method": "GET",
                "url_scheme": "http",
                "http_route": "/",
                "http_response_status_code": "200",
                "error_type": "",
                "network_protocol_version": "1.1",
            },
        ),
    ],
)
def test_conventions_name_the_metrics(registry, convention, counter, labels):
    app = Starlette(routes=[Route("/", lambda request: PlainTextResponse("x"))])
    app.add_middleware(Middleware, registry=registry, convention=convention)
    request(app, "/")
    assert registry.get_sample_value(counter, labels) == 1
    if convention == "instrumentator":
        assert registry.get_sample_value("http_request_duration_highr_seconds_count") == 1


def test_a_wrong_option_is_explained(registry):
    with pytest.raises(ValueError, match="does not begin with a digit$"):
        talea_metrics.http_meter(registry=registry, prefix="9")
    with pytest.raises(ValueError, match='"other".*expected prometheus'):
        talea_metrics.http_meter(registry, convention="other")


ENDS = ["returns", "raises", "is cancelled", "is closed", "is forgotten", "loses its client"]


@given(
    status=st.sampled_from([None, 200, 404, 500]),
    pieces=st.integers(0, 3),
    has_last=st.booleans(),
    waits=st.booleans(),
    end=st.sampled_from(ENDS),
)
@settings(max_examples=40, deadline=None)
def test_each_request_ends_once_whatever_its_application_does(status, pieces, has_last, waits, end):
    registry = talea_metrics.CollectorRegistry(size=4 << 20)

    async def app(scope, receive, send):
        if status is not None:
            await send({"type": "http.response.start", "status": status, "headers": []})
            for _ in range(pieces):
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
            if has_last:
                await send({"type": "http.response.body", "body": b"x"})
        if waits or end in ("is closed", "is forgotten"):
            await pause()
        if end == "raises":
            raise KeyError("no item")
        if end == "loses its client":
            raise ClientDisconnect()
        if end == "is cancelled":
            raise asyncio.CancelledError()

    @types.coroutine
    def pause():
        yield

    async def send(message):
        pass

    metered = Middleware(app, registry=registry, route=lambda scope: "/x")
    awaited = metered({"type": "http", "method": "GET", "path": "/x"}, None, send).__await__()
    raised = (StopIteration, KeyError, ClientDisconnect, asyncio.CancelledError)
    with contextlib.suppress(*raised):
        next(awaited)
        if end == "is closed":
            awaited.close()
        elif end == "is forgotten":
            del awaited
            # The exchange, its coroutine and the scope refer to each other.
            gc.collect()
        else:
            next(awaited)
    # An error whose application raises then was not its own answer.
    if status is not None and has_last and not (status == 500 and end == "raises"):
        expected = "complete"
    else:
        expected = "panicked" if end == "raises" else "aborted"
    found = {key[1:]: value for key, value in outcomes(registry).items()}
    assert found == {("/x", expected): 1}
    if status is not None or end == "raises":
        assert [key[1:] for key in statuses(registry)] == [("/x", f"{(status or 500) // 100}xx")]
    assert in_flight(registry) == {}


def test_a_send_that_raises_is_a_client_that_left(registry):
    def pieces():
        yield from ["a", "b", "c"]

    app = Starlette(routes=[Route("/", lambda request: StreamingResponse(pieces()))])
    app.add_middleware(Middleware, registry=registry)
    sent = []

    def take(message):
        sent.append(message)
        if len(sent) == 3:
            raise OSError("the client left")

    with pytest.raises(ClientDisconnect):
        request(app, "/", take=take)
    assert outcomes(registry) == {("GET", "/", "aborted"): 1}
    assert in_flight(registry) == {}


@pytest.mark.parametrize(
    "last, bytes",
    [({"body": b"12"}, 3), ({}, 1), ({"more_body": False}, 1), ({"body": b"12", "more_body": False}, 3)],
)
def test_a_body_ends_with_a_message_that_announces_no_more(registry, last, bytes):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"1", "more_body": True})
        await send({"type": "http.response.body", "more_body": True})
        assert outcomes(registry) == {}
        await send({"type": "http.response.body", **last})
        assert list(outcomes(registry).values()) == [1]

    request(Middleware(app, registry=registry, detailed=True), "/")
    page = talea_metrics.generate_latest(registry).decode()
    [line] = [line for line in page.splitlines() if line.startswith("http_response_body_size_bytes_sum")]
    assert float(line.split()[-1]) == bytes


@pytest.mark.parametrize(
    "pieces, bytes",
    [
        ([{"type": "http.response.pathsend", "path": "/x"}], 0),
        ([{"type": "http.response.zerocopysend", "file": 0}], 0),
        ([{"type": "http.response.zerocopysend", "file": 0, "count": None}], 0),
        (
            [
                {"type": "http.response.body", "body": b"1", "more_body": True},
                {"type": "http.response.zerocopysend", "file": 0, "count": 10, "more_body": True},
                {"type": "http.response.zerocopysend", "file": 0, "count": 5},
            ],
            16,
        ),
    ],
)
def test_a_file_that_the_server_sends_is_a_piece_of_the_body(registry, pieces, bytes):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in pieces:
            assert outcomes(registry) == {}
            await send(piece)

    request(Middleware(app, registry=registry, route=lambda scope: "/x", detailed=True), "/x")
    assert outcomes(registry) == {("GET", "/x", "complete"): 1}
    sent = series(registry, "http_response_body_size_bytes_sum", "route")
    assert sent == ({("/x",): bytes} if bytes else {})


def test_other_scopes_pass(registry):
    seen = []

    @contextlib.asynccontextmanager
    async def lifespan(app):
        seen.append("started")
        yield
        seen.append("ended")

    async def talk(websocket):
        await websocket.accept()
        await websocket.send_text("hello")
        await websocket.close()

    app = Starlette(routes=[WebSocketRoute("/talk", talk)], lifespan=lifespan)
    app.add_middleware(Middleware, registry=registry)

    async def run(scope, *received):
        messages, sent = list(received), []

        async def receive():
            return messages.pop(0)

        async def send(message):
            sent.append(message["type"])

        await app(scope, receive, send)
        return sent

    sent = asyncio.run(
        run({"type": "lifespan"}, {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})
    )
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"] and len(seen) == 2
    scope = {"type": "websocket", "path": "/talk", "headers": [], "query_string": b"", "root_path": ""}
    sent = asyncio.run(run(scope, {"type": "websocket.connect"}))
    assert sent == ["websocket.accept", "websocket.send", "websocket.close"]
    assert outcomes(registry) == {} and in_flight(registry) == {}


def test_odd_messages_and_calls_are_errors_and_leave_nothing_in_flight(registry):
    messages = [[1], {"type": 5}, {"type": "http.response.start", "status": "x"}]
    messages += [{"type": "http.response.body", "body": 7}, None]

    async def app(scope, receive, send):
        await send(scope["message"])

    async def send(message):
        pass

    metered = Middleware(app, registry=registry)
    for message in messages:
        with pytest.raises(TypeError):
            scope = {"type": "http", "method": "GET", "path": "/", "message": message}
            metered(scope, None, send).__await__().__next__()
    with pytest.raises(TypeError):
        metered([], None, None)
    assert sum(outcomes(registry).values()) == len(messages)
    assert in_flight(registry) == {}


@pytest.mark.parametrize("outcome", ["complete", "aborted"])
def test_a_request_leaves_nothing_behind_even_if_its_server_forgets_it(registry, outcome):
    """Its coroutine, the scope, the server's `send` and the exchange refer to each other."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        scope["inner_send"] = send
        if outcome == "aborted":
            await asyncio.sleep(3600)
        await send({"type": "http.response.body"})

    class Send:
        def __init__(self, scope):
            self.scope = scope

        async def __call__(self, message):
            pass

    async def run():
        scope = {"type": "http", "method": "GET", "path": "/"}
        scope["send"] = send = Send(scope)
        awaited = Middleware(app, registry=registry)(scope, None, send).__await__()
        next(awaited, None)
        return weakref.ref(send)

    left = asyncio.run(run())
    gc.collect()
    assert left() is None
    assert {key[2] for key in outcomes(registry)} == {outcome} and in_flight(registry) == {}


@pytest.mark.parametrize(
    ("route", "before", "after"),
    [
        (lambda scope: "/known", "/known", "/known"),
        (lambda scope: scope["found"], "_unmatched", "/later"),
        (lambda scope: scope.get("found"), "_unmatched", "/later"),
        (lambda scope: None, "_unmatched", "_unmatched"),
    ],
)
def test_a_request_is_in_flight_before_its_head(registry, route, before, after):
    async def app(scope, receive, send):
        assert in_flight(registry) == {(before,): 1}
        scope["found"] = "/later"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        assert in_flight(registry) == {(after,): 1}
        await send({"type": "http.response.body"})

    request(Middleware(app, route=route, registry=registry), "/")
    assert {key[1:]: value for key, value in outcomes(registry).items()} == {(after, "complete"): 1}
    assert in_flight(registry) == {}


def mounted(shape):
    """An application in which an inner layer answers for an exception, and raises it on."""

    def fail(request=None):
        raise ValueError

    if shape == "fastapi":
        inner = FastAPI()
        inner.get("/fail")(fail)
    else:
        inner = Starlette(routes=[Route("/fail", fail)])
    return Starlette(routes=[Mount("/shop", inner)])


async def answers_and_raises(scope, receive, send):
    await send({"type": "http.response.start", "status": 500, "headers": []})
    await send({"type": "http.response.body", "body": b"a", "more_body": True})
    await send({"type": "http.response.body", "body": b"b"})
    raise ValueError


@pytest.mark.parametrize("shape", ["fastapi", "starlette", "pieces"])
def test_an_exception_is_a_failure_also_if_a_layer_inside_answers_for_it(registry, shape):
    if shape == "pieces":
        app, route = Middleware(answers_and_raises, route=lambda _: "/shop/fail", registry=registry, detailed=True), "/shop/fail"
    else:
        app, route = mounted(shape), "/shop/fail"
        app.add_middleware(Middleware, registry=registry, detailed=True)
    with pytest.raises(ValueError):
        request(app, "/shop/fail")
    assert outcomes(registry) == {("GET", route, "panicked"): 1}
    assert statuses(registry) == {("GET", route, "5xx"): 1}
    assert in_flight(registry) == {}


@pytest.mark.parametrize("pieces", [1, 2])
def test_an_error_that_the_application_answers_itself_is_complete(registry, pieces):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 503, "headers": []})
        for n in range(pieces):
            await send({"type": "http.response.body", "body": b"1234", "more_body": n + 1 < pieces})

    request(Middleware(app, route=lambda _: "/x", registry=registry, detailed=True), "/")
    assert outcomes(registry) == {("GET", "/x", "complete"): 1}
    assert statuses(registry) == {("GET", "/x", "5xx"): 1}
    assert registry.get_sample_value(
        "http_response_body_size_bytes_sum", {"method": "GET", "route": "/x"}
    ) == 4 * pieces
    assert in_flight(registry) == {}


@pytest.mark.parametrize(
    ("methods", "shown"), [(["GET", "HEAD"], ["GET", "HEAD"]), (["HEAD"], ["HEAD"]), (["GET"], ["GET"])]
)
def test_a_head_that_a_route_of_fastapi_handles_itself_is_a_head(registry, methods, shown):
    app = FastAPI()
    app.add_middleware(Middleware, registry=registry)
    app.api_route("/items", methods=methods)(lambda: "hello")
    for method in shown:
        assert request(app, "/items", method)[0] == 200
    assert outcomes(registry) == {(method, "/items", "complete"): 1 for method in shown}
