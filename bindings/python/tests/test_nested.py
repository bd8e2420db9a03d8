"""The middleware for ASGI around applications, servers and other middleware."""

import asyncio
import contextlib
import gc
import weakref
from collections import Counter

import pytest
from asgiref.compatibility import guarantee_single_callable
from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware as StarletteMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, Router

import talea_metrics
from talea_metrics.asgi import Middleware
from test_http import lifespan, outcomes, request, series


def test_servers_take_the_middleware_for_asgi_3(registry):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    metered = Middleware(app, route=lambda scope: scope["path"], registry=registry)
    found = [guarantee_single_callable(metered), metered.__call__]
    with contextlib.suppress(ImportError):
        from uvicorn.config import Config

        config = Config(metered, log_config=None)
        config.load()
        found.append(config.loaded_app)
        del config
    for one in found:
        assert request(one, "/k") == (204, b"")
    (count,) = outcomes(registry).values()
    assert count == len(found)
    dropped = Middleware(app, registry=registry)
    left = weakref.ref(dropped)
    del dropped
    gc.collect()
    assert left() is None


@pytest.mark.parametrize("starts", [True, False])
def test_of_several_middlewares_the_outer_one_records_all(registry, starts):
    async def show(request):
        return PlainTextResponse("hello")

    inside = {"registry": registry, "convention": "instrumentator"}
    part = Starlette(routes=[Route("/{item}", show)])
    part.add_middleware(Middleware, **inside)
    app = Starlette(routes=[Mount("/part", part), Route("/", show)])
    app.add_middleware(Middleware, **inside)
    app.add_middleware(Middleware, registry=registry, prefix="outer")
    if starts:
        asyncio.run(lifespan(app))
    for path, status in [("/", 200), ("/part/a", 200), ("/part/a/b", 404), ("/none", 404)]:
        assert request(app, path)[0] == status
    assert series(registry, "outer_http_requests_total", "route") == {
        ("/",): 1,
        ("/part/{item}",): 1,
        ("_unmatched",): 2,
    }
    assert series(registry, "http_requests_total", "handler") == {}
    # By itself, it has routes of its own.
    assert request(part, "/a")[0] == 200
    assert series(registry, "http_requests_total", "handler") == {("/{item}",): 1}


def test_routes_that_are_added_while_the_server_starts_have_names(registry):
    def show(request: Request):
        return PlainTextResponse("hello")

    @contextlib.asynccontextmanager
    async def starts(app):
        shared.routes.append(Route("/late/{item}", show))
        app.router.routes.append(Mount("/again", shared))
        yield

    shared = Router([Route("/early/{item}", show)])
    app = Starlette(routes=[Mount("/first", shared)], lifespan=starts)

    @contextlib.asynccontextmanager
    async def starts_too(app):
        included.add_api_route("/late/{item}", show)
        app.add_api_route("/own/{item}", show)
        yield

    included = APIRouter()
    included.add_api_route("/early/{item}", show)
    other = FastAPI(lifespan=starts_too)
    other.include_router(included, prefix="/v1")
    for metered, paths in [
        (app, ["/first/early", "/first/late", "/again/early", "/again/late"]),
        (other, ["/v1/early", "/v1/late", "/own"]),
    ]:
        metered.add_middleware(Middleware, registry=registry)
        asyncio.run(lifespan(metered))
        for path in paths:
            assert request(metered, f"{path}/1") == (200, b"hello")
            assert outcomes(registry)[("GET", f"{path}/{{item}}", "complete")] == 1


def test_a_route_that_is_added_later_has_a_name_from_its_second_request_on(registry):
    def show(request: Request):
        return PlainTextResponse("hello")

    def fail(request: Request):
        raise RuntimeError("no")

    inner = Router([Route("/early", show)])
    app = Starlette(routes=[Mount("/v1", inner)])
    included = APIRouter()
    included.add_api_route("/early", show)
    other = FastAPI()
    other.include_router(included, prefix="/v2")
    expected = Counter()
    for metered, prefix, add in [(app, "/v1", inner.add_route), (other, "/v2", included.add_api_route)]:
        metered.add_middleware(Middleware, registry=registry)
        assert request(metered, f"{prefix}/early")[0] == 200
        expected["GET", f"{prefix}/early", "complete"] += 1
        for path, outcome in [("/late", "complete"), ("/fail", "panicked"), ("/later", "complete")]:
            add(path, show if outcome == "complete" else fail)
            for route in ["_unmatched", prefix + path, prefix + path]:
                with contextlib.suppress(RuntimeError):
                    request(metered, prefix + path)
                expected["_OTHER" if route == "_unmatched" else "GET", route, outcome] += 1
        assert request(metered, f"{prefix}/none")[0] == 404
        assert request(metered, f"{prefix}/late", "PUT")[0] == 405
        expected["_OTHER", "_unmatched", "complete"] += 2
    assert outcomes(registry) == expected


def test_a_mount_that_answers_by_itself_has_the_routes_read_once(registry):
    reads = []

    class Application(Starlette):
        @property
        def routes(self):
            reads.append(self)
            return super().routes

    def refuse(app):
        return PlainTextResponse("no", status_code=401)

    inner = [Route("/x", lambda request: PlainTextResponse("hello"))]
    app = Application(routes=[Mount("/in", routes=inner, middleware=[StarletteMiddleware(refuse)])])
    app.add_middleware(Middleware, registry=registry)
    for _ in range(9):
        assert request(app, "/in/x") == (401, b"no")
    assert len(reads) == 2


def test_a_router_that_is_mounted_twice_has_two_routes(registry):
    async def show(request):
        return PlainTextResponse("hello")

    shared = Router([Route("/a", show), Mount("/in", routes=[Route("/b/{c}", show)])])
    mounts = [Mount("/v1", shared), Mount("/v2", shared), Mount("/of/{tenant}", shared)]
    app = Starlette(routes=[Mount("/api", routes=mounts), Mount("/v1", shared)])
    app.add_middleware(Middleware, registry=registry)
    # A server behind a proxy that took the beginning of the path away.
    behind = [("/api/v1/a", "/proxy"), ("/v1/a", "/api")]
    for path, root in [
        ("/api/v1/a", ""),
        ("/api/v2/a", ""),
        ("/api/v2/a", ""),
        ("/api/of/x/in/b/1", ""),
        ("/v1/in/b/2", ""),
        *((root + path, root) for path, root in behind),
    ]:
        assert request(app, path, root_path=root) == (200, b"hello"), path
    assert outcomes(registry) == {
        ("GET", "/api/v1/a", "complete"): 2,
        ("GET", "/api/v2/a", "complete"): 2,
        ("GET", "/api/of/{tenant}/in/b/{c}", "complete"): 1,
        ("GET", "/v1/in/b/{c}", "complete"): 1,
        ("GET", "/v1/a", "complete"): 1,
    }


def test_routes_that_two_applications_share_are_each_ones_own(registry):
    shared = [Route("/a", lambda request: PlainTextResponse("hello"))]
    shared.append(Mount("/of", Router([shared[0]])))
    applications = {}
    for name in ["first", "second"]:
        app = applications[name] = Starlette(routes=[Mount(f"/{name}", routes=shared)])
        app.add_middleware(Middleware, registry=registry, prefix=name)
    # The routes of the second are read between two requests of the first.
    for name in ["first", "second", "first"]:
        for path in ["a", "of/a"]:
            assert request(applications[name], f"/{name}/{path}") == (200, b"hello")
    for name, times in [("first", 2), ("second", 1)]:
        found = series(registry, f"{name}_http_requests_total", "route")
        assert found == {(f"/{name}/a",): times, (f"/{name}/of/a",): times}


def test_a_request_that_is_made_again_is_recorded_again(registry):
    async def app(scope, receive, send):
        if scope["path"] != "/error":
            raise RuntimeError("no")
        await send({"type": "http.response.start", "status": 500, "headers": []})
        await send({"type": "http.response.body"})

    metered = Middleware(app, registry=registry, route=lambda scope: scope["path"])

    async def explained(scope, receive, send):
        try:
            await metered(scope, receive, send)
        except RuntimeError:
            await metered({**scope, "path": "/error"}, receive, send)

    assert request(explained, "/x")[0] == 500
    found = {key[1:]: value for key, value in outcomes(registry).items()}
    assert found == {("/x", "panicked"): 1, ("/error", "complete"): 1}
