"""Threads at once: without a global interpreter lock they are in Talea in parallel."""

import gc
import os
import subprocess
import sys
import threading
import time

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

import talea_metrics
from talea_metrics.asgi import Middleware
from test_http import outcomes, request

THREADS = 8


def at_once(*works):
    """Runs functions in threads of their own that begin together, and raises what one of them raises."""
    gate = threading.Barrier(len(works))
    errors = []

    def run(work):
        gate.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_threads_on_one_child_lose_nothing(registry):
    orders = talea_metrics.Counter("orders", "Orders.", ["method"], registry=registry)
    child = orders.labels("card")
    level = talea_metrics.Gauge("level", "Level.", registry=registry)
    sizes = talea_metrics.Histogram("sizes", "Sizes.", registry=registry)
    parts = talea_metrics.Summary("parts", "Parts.", registry=registry)

    def count():
        for n in range(10_000):
            child.inc()
            orders.labels("card").inc()
            level.inc(2)
            level.dec()
            sizes.observe(n % 8)
            parts.observe(1)

    at_once(*[count] * THREADS)
    total = THREADS * 10_000
    assert registry.get_sample_value("orders_total", {"method": "card"}) == 2 * total
    assert registry.get_sample_value("level") == total
    assert registry.get_sample_value("sizes_count") == total
    assert registry.get_sample_value("sizes_sum") == total * 3.5
    assert registry.get_sample_value("parts_sum") == total


def test_threads_that_need_the_same_new_series_get_one(registry):
    orders = talea_metrics.Counter("orders", "Orders.", ["n"], registry=registry)
    children = [[] for _ in range(THREADS)]

    def count(found):
        for n in range(500):
            child = orders.labels(n)
            child.inc()
            found.append(child)

    at_once(*[lambda found=found: count(found) for found in children])
    for same in zip(*children):
        assert all(child is same[0] for child in same)
    samples = [sample for family in registry.collect() for sample in family.samples]
    values = [sample.value for sample in samples if sample.name == "orders_total"]
    assert values == [THREADS] * 500


def test_threads_that_define_the_same_metric_agree(registry):
    """One of them has it, and the others are informed; all count in one series."""
    for n in range(20):
        refused = []

        def define():
            try:
                talea_metrics.Counter(f"orders_{n}", "Orders.", registry=registry).inc()
            except ValueError:
                refused.append(1)

        at_once(*[define] * THREADS)
        assert len(refused) == THREADS - 1
        assert registry.get_sample_value(f"orders_{n}_total") == 1


def test_pages_are_whole_while_threads_change_what_is_there(registry):
    orders = talea_metrics.Counter("orders", "Orders.", ["n"], registry=registry)
    facts = talea_metrics.Info("build", "Build.", ["n"], registry=registry)
    level = talea_metrics.Gauge("level", "Level.", ["n"], registry=registry)
    kept = talea_metrics.Counter("kept", "Kept.", registry=registry)
    is_over = threading.Event()

    def change(at):
        for n in range(400):
            orders.labels(f"{at} {n % 20}").inc()
            facts.labels(f"{n % 7}").info({"at": str(at)})
            level.labels(at).set_function(lambda: at)
            if n % 10 == 0:
                orders.remove(f"{at} {n % 20}")
                orders.remove_by_labels({"n": f"{at} {(n + 3) % 20}"})
            if n % 100 == 0:
                orders.clear()
            kept.inc()
            kept_by_another.inc()

    def reset():
        while not is_over.is_set():
            kept_by_another.reset()
            gc.collect()

    def read():
        before = 0
        while not is_over.is_set():
            page = {family.name: family for family in registry.collect()}
            value = page["kept"].samples[0].value
            assert before <= value <= (THREADS - 2) * 400
            before = value
            for sample in page["level"].samples:
                assert sample.labels["n"] == f"{sample.value:.0f}" or sample.value == 0

    # From the first page on: a family without series is in none.
    level.labels(0)
    kept_by_another = talea_metrics.Counter("reset", "Reset.", registry=registry)
    writers = [lambda at=at: change(at) for at in range(THREADS - 2)]
    left = [len(writers)]
    lock = threading.Lock()

    def until_the_last(writer):
        try:
            writer()
        finally:
            with lock:
                left[0] -= 1
                if not left[0]:
                    is_over.set()

    at_once(read, reset, *[lambda writer=writer: until_the_last(writer) for writer in writers])
    assert registry.get_sample_value("kept_total") == (THREADS - 2) * 400
    assert 0 <= registry.get_sample_value("reset_total") <= (THREADS - 2) * 400


def test_threads_may_share_a_timer(registry):
    times = talea_metrics.Histogram("times_seconds", "Times.", registry=registry)
    timer = times.time()

    def measure():
        for _ in range(1_000):
            with timer, timer:
                pass

    at_once(*[measure] * THREADS)
    assert registry.get_sample_value("times_seconds_count") == THREADS * 2_000
    assert 0 <= registry.get_sample_value("times_seconds_sum") < 3600
    assert timer.duration >= 0


def test_the_first_requests_of_an_application_may_come_in_several_threads():
    for _ in range(20):
        registry = talea_metrics.CollectorRegistry(size=4 << 20)
        app = Starlette(routes=[Route(f"/{n}/{{item}}", lambda _: PlainTextResponse("hello")) for n in "abc"])
        # Each thread may make a middleware of its own: Starlette makes them at the first request.
        app.add_middleware(Middleware, registry=registry)

        def show():
            for n in "abc":
                for _ in range(3):
                    assert request(app, f"/{n}/1") == (200, b"hello")

        at_once(*[show] * THREADS)
        complete = {("GET", f"/{n}/{{item}}", "complete"): 3 * THREADS for n in "abc"}
        assert outcomes(registry) == complete


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_catches_no_lock_of_talea(registry):
    """Each thread has objects of its own: without the interpreter's lock, a fork may catch those of Python."""
    region = registry._region
    is_over = threading.Event()

    def change(at):
        _, info = region.info(f"info_{at}", "Info.", [])
        while not is_over.is_set():
            info.set([], [("at", at)])
            for n in range(20):
                region.info(f"other_{at}_{n}", "Info.", [])
            region.render("", False, [])
            for n in range(20):
                region.unregister(f"other_{at}_{n}")

    def fork():
        _, own = region.info("info_own", "Info.", [])
        try:
            for n in range(15):
                child = os.fork()
                if child == 0:
                    own.set([], [("n", str(n))])
                    region.info(f"child_{n}", "Info.", [])[1].set([], [])
                    page, _ = region.render("", False, [])
                    os._exit(0 if f'info_own_info{{n="{n}"}} 1' in page.decode() else 1)
                deadline = time.monotonic() + 60
                while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
                    if time.monotonic() > deadline:
                        os.kill(child, 9)
                    time.sleep(0.001)
                assert ended == (child, 0)
        finally:
            is_over.set()

    at_once(fork, *[lambda at=str(at): change(at) for at in range(3)])


PROGRAM = """
import asyncio, threading, time
import talea_metrics

turns = threading.Semaphore(0)

def pieces():
    while True:
        yield b"x"
        turns.release()
        time.sleep(0)

def wsgi():
    def app(environ, start_response):
        start_response("200 OK", [])
        return pieces()

    list(talea_metrics.wsgi.Middleware(app)({"REQUEST_METHOD": "GET"}, lambda *_: None))

def asgi():
    async def app(scope, receive, send):
        list(pieces())

    async def main():
        await talea_metrics.asgi.Middleware(app)({"type": "http"}, None, None)

    asyncio.run(main())

def define():
    registry = talea_metrics.CollectorRegistry()
    while True:
        registry.unregister(talea_metrics.Counter("orders", "Orders.", registry=registry))
        turns.release()

for _ in range(4):
    threading.Thread(target=%s, daemon=True).start()
for _ in range(100):
    turns.acquire()
"""


@pytest.mark.parametrize("work", ["wsgi", "asgi", "define"])
def test_a_program_ends_while_daemon_threads_work(work):
    subprocess.run([sys.executable, "-c", PROGRAM % work], check=True, timeout=60)
