"""Regions in memory, which are used again when no object leads to them."""

import gc
import os
import subprocess
import sys
import time
import weakref

import pytest

import talea_metrics
import talea_metrics.wsgi
from talea_metrics.asgi import Middleware
from talea_metrics.openmetrics.exposition import generate_latest as generate_openmetrics


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def page_of_a_task(value, register=talea_metrics.Counter):
    """A page as a task that pushes makes one: of a registry of its own."""
    registry = talea_metrics.CollectorRegistry()
    talea_metrics.Counter("done", "Done.", ["task"], registry=registry).labels("a").inc(value)
    talea_metrics.Summary("took", "Time.", registry=registry, quantiles=[0.5]).observe(value)
    talea_metrics.Gauge("level", "Level.", registry=registry).set_function(lambda: value)
    talea_metrics.Info("build", "Build.", registry=registry).info({"version": str(value)})
    with talea_metrics.Gauge("apart", "Of no registry.", registry=None).track_inprogress():
        return generate_openmetrics(registry).decode(), registry


def test_registries_that_are_gone_leave_no_memory_behind():
    first, _ = page_of_a_task(1)
    # The first one lives on, so that these are of another region.
    _, kept = page_of_a_task(2)
    before, began = descriptors(), time.time()
    for value in range(3, 23):
        page, registry = page_of_a_task(value)
        assert f'done_total{{task="a"}} {value}.0\n' in page
        assert f"took_sum {value}.0\n" in page and "took_count 1.0\n" in page
        median = float(page.split('took{quantile="0.5"} ')[1].split("\n")[0])
        assert median == pytest.approx(value, rel=0.05)
        assert f"level {value}.0\n" in page
        assert f'build_info{{version="{value}"}} 1.0\n' in page
        assert page.count("\n") == first.count("\n")
        created = float(page.split('done_created{task="a"} ')[1].split("\n")[0])
        assert created >= began - 1
        del registry
        empty = talea_metrics.CollectorRegistry()
        assert talea_metrics.generate_latest(empty) == b""
        del empty
    assert descriptors() <= before + 4
    assert kept.get_sample_value("done_total", {"task": "a"}) == 2


def test_a_registry_that_is_gone_may_have_had_anything():
    talea_metrics.Counter("same", "Counter.", ["x"], registry=talea_metrics.CollectorRegistry()).labels("a").inc(5)
    gc.collect()
    registry = talea_metrics.CollectorRegistry()
    same = talea_metrics.Histogram("same", "Histogram.", registry=registry, buckets=[1])
    same.observe(0.5)
    assert registry.get_sample_value("same_bucket", {"le": "1.0"}) == 1
    assert registry.get_sample_value("same_count") == 1


def everything(labelnames, limit, modes):
    """A registry with a metric of each kind that has been used, and one that has only been registered."""
    kinds = [
        (talea_metrics.Counter, {}, lambda metric: metric.inc(3)),
        *((talea_metrics.Gauge, {"multiprocess_mode": mode}, lambda metric: metric.set(3)) for mode in modes),
        (talea_metrics.Histogram, {"native": True, "quantiles": [0.5]}, lambda metric: metric.observe(3)),
        (talea_metrics.Summary, {"quantiles": [0.5]}, lambda metric: metric.observe(3)),
        (talea_metrics.Enum, {"states": ["a", "b"]}, lambda metric: metric.state("b")),
        (talea_metrics.Info, {}, lambda metric: metric.info({"fact": "x"})),
    ]
    registry = talea_metrics.CollectorRegistry()
    metrics = []
    for number, (kind, options, use) in enumerate(kinds):
        if kind is not talea_metrics.Info:
            options["limit"] = limit
        metrics.append((kind(f"metric_{number}", "M.", labelnames, registry=registry, **options), use))
    return registry, metrics


def lines(registry):
    return [line for line in generate_openmetrics(registry).decode().split("\n") if "_created" not in line]


@pytest.mark.parametrize("labelnames", [[], ["of"]])
@pytest.mark.parametrize("limit", [20_000, 2])
@pytest.mark.parametrize("modes", [["mostrecent"], ["mostrecent", "sum", "max", "min", "all"]])
def test_nothing_of_a_registry_is_in_the_next(labelnames, limit, modes):
    fresh, metrics = everything(labelnames, limit, modes)
    expected = lines(fresh)
    assert not any(" 3.0" in line or "fact" in line for line in expected)
    for _ in range(3):
        registry, metrics = everything(labelnames, limit, modes)
        assert lines(registry) == expected
        for metric, use in metrics:
            for value in "xyz" if labelnames else "x":
                use(metric.labels(value) if labelnames else metric)
        assert lines(registry) != expected
        del registry, metrics, metric
        gc.collect()


def test_what_outlives_its_registry_counts_nowhere_else():
    def left(registry):
        counter = talea_metrics.Counter("left", "Left.", ["x"], registry=registry)
        gauge = talea_metrics.Gauge("busy", "Busy.", registry=registry)
        return [counter.labels("a").inc, gauge.track_inprogress().__enter__]

    updates = left(talea_metrics.CollectorRegistry())
    gc.collect()
    registry = talea_metrics.CollectorRegistry()
    left(registry)
    for update in updates:
        update()
    assert registry.get_sample_value("left_total", {"x": "a"}) == 0
    assert registry.get_sample_value("busy") == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_registry_that_a_child_shares_is_its_own_when_the_parent_drops_it():
    registry = talea_metrics.CollectorRegistry()
    done = talea_metrics.Counter("done", "Done.", registry=registry)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reading, 1)
        done.inc(5)
        is_right = registry.get_sample_value("done_total") == 5
        os._exit(0 if is_right else 1)
    del registry, done
    gc.collect()
    others = [talea_metrics.CollectorRegistry() for _ in range(3)]
    counters = [talea_metrics.Counter("done", "Done.", registry=other) for other in others]
    os.write(writing, b"x")
    assert os.waitpid(child, 0)[1] == 0
    assert [counter._value.get() for counter in counters] == [0, 0, 0]
    for descriptor in (reading, writing):
        os.close(descriptor)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forks_between_registries_leave_nothing_behind():
    page_of_a_task(1)
    before = descriptors()
    for value in range(2, 12):
        child = os.fork()
        if child == 0:
            page, _ = page_of_a_task(-value % 7)
            os._exit(0 if f'done_total{{task="a"}} {-value % 7}.0' in page else 1)
        page, _ = page_of_a_task(value)
        del _
        assert f'done_total{{task="a"}} {value}.0' in page
        assert os.waitpid(child, 0)[1] == 0
    assert descriptors() <= before + 4


class Holder:
    """An object of a program, which leads to a metric or a middleware that leads back to it."""


def with_function(labelnames):
    holder = Holder()
    level = talea_metrics.Gauge("level", "Level.", labelnames, registry=talea_metrics.CollectorRegistry())
    holder.level = level.labels("x") if labelnames else level
    # Of a child, by way of the metric that has it.
    holder.level.set_function(lambda: 1 if holder and level else 0)
    return holder


def with_blocks():
    holder = Holder()
    registry = talea_metrics.CollectorRegistry()
    level = talea_metrics.Gauge("level", "Level.", registry=registry)
    done = talea_metrics.Counter("done", "Done.", registry=registry)
    holder.blocks = [level.time(), level.track_inprogress(), done.count_exceptions(ValueError)]
    talea_metrics.Gauge("depth", "Depth.", registry=registry).set_function(lambda: len(holder.blocks))
    return holder


def with_middleware(route):
    holder = Holder()

    async def app(scope, receive, send):
        assert holder

    holder.app = Middleware(app, registry=talea_metrics.CollectorRegistry(), route=route)
    return holder


def with_body():
    holder = Holder()

    def app(environ, start_response):
        yield b"x"
        assert holder

    registry = talea_metrics.CollectorRegistry(size=4 << 20)
    holder.body = talea_metrics.wsgi.Middleware(app, registry=registry)({"REQUEST_METHOD": "GET"}, lambda *_: None)
    next(holder.body)
    return holder


@pytest.mark.parametrize(
    "make",
    [
        lambda: with_function([]),
        lambda: with_function(["of"]),
        with_blocks,
        lambda: with_middleware(None),
        lambda: with_middleware(lambda scope: "/"),
        with_body,
    ],
    ids=["function", "function of a child", "blocks", "middleware", "middleware with a route", "body"],
)
def test_a_cycle_of_references_through_talea_is_collected(make):
    left = weakref.ref(make())
    gc.collect()
    assert left() is None


COLLECTS_AT_EVERY_OBJECT = """
import gc, talea_metrics, talea_metrics.asgi, talea_metrics.wsgi
gc.set_threshold(1)
registry = talea_metrics.CollectorRegistry(size=4 << 20)
for kind in (getattr(talea_metrics, name) for name in ("Counter", "Gauge", "Histogram", "Summary", "Info")):
    metric = kind(kind.__name__, "M.", ["of"], registry=registry)
    children = [metric.labels(n) for n in range(100)]
for n in range(100):
    timer = talea_metrics.Summary("took", "Time.", registry=None).time()
    app = talea_metrics.asgi.Middleware(print, registry=registry, route=print)
    body = talea_metrics.wsgi.Middleware(lambda *_: [b"x"], registry=registry)({"REQUEST_METHOD": "GET"}, print)
"""


def test_a_garbage_collection_may_begin_while_an_object_is_made():
    done = subprocess.run([sys.executable, "-c", COLLECTS_AT_EVERY_OBJECT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def a_livesum_gauge(path):
    registry = talea_metrics.CollectorRegistry(path=path, size=4 << 20)
    talea_metrics.Gauge("running", "Running.", multiprocess_mode="livesum", registry=registry).inc()


def many_metrics(path):
    registry = talea_metrics.CollectorRegistry(path=path, size=4 << 20)
    for n in range(80):
        talea_metrics.Counter(f"made_{n}", "Made.", registry=registry).inc()


def a_middleware(path):
    registry = talea_metrics.CollectorRegistry(size=4 << 20)
    app = talea_metrics.wsgi.Middleware(lambda *_: [b"x"], registry=registry)
    assert list(app({"REQUEST_METHOD": "GET"}, lambda *_: None)) == [b"x"]


@pytest.mark.parametrize("where", ["memory", "file"])
@pytest.mark.parametrize("make", [a_livesum_gauge, many_metrics, a_middleware])
def test_registries_that_are_gone_leave_no_descriptors(make, where, region):
    path = region if where == "file" else None
    make(path)
    gc.collect()
    before = descriptors()
    for _ in range(20):
        make(path)
        gc.collect()
    assert descriptors() <= before


def test_a_registry_that_is_gone_counts_as_a_process_that_ended(region):
    a_livesum_gauge(region)
    gc.collect()
    registry = talea_metrics.CollectorRegistry(path=region)
    assert registry.get_sample_value("running") in (None, 0)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


GROWTH_OF_MIDDLEWARES = """
import gc, test_memory
test_memory.a_middleware(None)
gc.collect()
before = test_memory.resident()
for _ in range(100):
    test_memory.a_middleware(None)
    gc.collect()
print(test_memory.resident() - before)
"""


def test_middlewares_that_are_gone_leave_little_memory():
    # In a process of its own: the heap of this one has gaps of other tests.
    tests = os.path.dirname(__file__)
    command = [sys.executable, "-c", GROWTH_OF_MIDDLEWARES]
    growth = subprocess.run(command, cwd=tests, capture_output=True, text=True, check=True).stdout
    assert int(growth) < 100 * 100_000


# With few descriptors. An application has many routes, and answers a request at each of some.
APPLICATIONS = """
import gc, resource, sys

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

import talea_metrics, test_memory
from talea_metrics.asgi import Middleware

kind, path = sys.argv[1:]


async def answer(request):
    return PlainTextResponse("x")


async def receive():
    return {"type": "http.request", "body": b"", "more_body": False}


async def send(message):
    pass


def registry():
    if kind == "default":
        return talea_metrics.REGISTRY
    return talea_metrics.CollectorRegistry(path=path if kind == "file" else None, size=4 << 20)


def make():
    app = Starlette(routes=[Route(f"/route/{n}", answer) for n in range(50)])
    used = registry()
    app.add_middleware(Middleware, registry=used)
    scope = {"type": "http", "method": "GET", "headers": [], "query_string": b"", "root_path": "", "app": app}
    for n in (1, 7, 1):
        called = app({**scope, "path": f"/route/{n}"}, receive, send)
        try:
            called.send(None)
        except StopIteration:
            continue
        raise AssertionError("the application waits")
    return used.get_sample_value("http_requests_total", {"method": "GET", "route": "/route/1", "status": "2xx"})


def many(count):
    for n in range(count):
        counted = make()
        if n % 10 == 9:
            gc.collect()
    return counted


def own_memory():
    # Without the pages of the file, which are counted once for each opening.
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("RssAnon:"))


many(20)
before = own_memory()
counted = many(280)
print(own_memory() - before, counted)
"""


@pytest.mark.parametrize(
    # Equal applications of a registry share their routes. Those of another one are not given back.
    "kind, most, counted", [("default", 5_000, 600), ("file", 500_000, 600), ("memory", 500_000, 2)]
)
def test_an_application_that_is_gone_leaves_little(kind, most, counted, region):
    tests = os.path.dirname(__file__)
    command = [sys.executable, "-c", APPLICATIONS, kind, region]
    done = subprocess.run(command, cwd=tests, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    growth, found = done.stdout.split()
    assert float(found) == counted
    assert int(growth) < 280 * most
