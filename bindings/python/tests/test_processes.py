"""Several processes, one region: forked, started anew, and killed."""

import os
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

import talea_metrics
from test_http import in_flight, outcomes

COUNT = """
import sys
import talea_metrics
orders = talea_metrics.Counter("orders", "Orders.", ["worker"])
running = talea_metrics.Gauge("running", "Running.", multiprocess_mode="livesum")
running.set(1)
for _ in range(1000):
    orders.labels("any").inc()
print("counted", flush=True)
sys.stdin.read()
"""


def start(region):
    environment = {**os.environ, "TALEA_REGION": region}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    worker = subprocess.Popen([sys.executable, "-c", COUNT], env=environment, **pipes)
    assert worker.stdout.readline() == "counted\n"
    return worker


def test_killed_workers_leave_their_counts_and_no_gauges(region):
    workers = [start(region) for _ in range(4)]
    registry = talea_metrics.CollectorRegistry(path=region)
    assert registry.get_sample_value("running") == 4
    for worker in workers[:3]:
        worker.kill()
        worker.wait()
    assert registry.get_sample_value("orders_total", {"worker": "any"}) == 4000
    assert registry.get_sample_value("running") == 1
    workers[3].communicate("")
    assert workers[3].returncode == 0
    start(region).communicate("")
    assert registry.get_sample_value("orders_total", {"worker": "any"}) == 5000


def test_a_metric_whose_help_changes_continues_from_its_value(region):
    # Each registry counts as a process.
    registries = [talea_metrics.CollectorRegistry(path=region) for _ in range(2)]
    for registry, documentation in zip(registries, ["Orders.", "Orders accepted."]):
        own = {"registry": registry}
        talea_metrics.Counter("orders", documentation, **own).inc()
        talea_metrics.Gauge("level", documentation, multiprocess_mode="sum", **own).set(1)
        talea_metrics.Histogram("took", documentation, **own).observe(1)
        talea_metrics.Summary("size", documentation, **own).observe(1)
    for registry in registries:
        for name in ["orders_total", "level", "took_count", "took_sum", "size_count", "size_sum"]:
            assert registry.get_sample_value(name) == 2, name


def test_forked_children_count_into_their_parents_memory():
    registry = talea_metrics.CollectorRegistry(size=4 << 20)
    orders = talea_metrics.Counter("orders", "Orders.", ["worker"], registry=registry)
    level = talea_metrics.Gauge("level", "Level.", multiprocess_mode="livesum", registry=registry)
    orders.labels("before").inc()
    level.set(1)
    children = []
    for n in range(3):
        child = os.fork()
        if child == 0:
            orders.labels("before").inc()
            orders.labels("after").inc()
            level.set(5)
            # One ends by itself, one by an exception's code, one by a signal.
            if n == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(n)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    assert registry.get_sample_value("orders_total", {"worker": "before"}) == 4
    assert registry.get_sample_value("orders_total", {"worker": "after"}) == 3
    assert registry.get_sample_value("level") == 1


def test_a_child_that_leaves_the_block_of_its_parent_does_not_end_it(registry):
    busy = talea_metrics.Gauge("busy", "Busy.", registry=registry)
    block = busy.track_inprogress()
    with block:
        child = os.fork()
        if child == 0:
            with block:
                pass
            block.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)
        assert registry.get_sample_value("busy") == 1
    assert registry.get_sample_value("busy") == 0


def test_a_child_leaves_the_requests_that_it_was_forked_in_to_its_parent(registry):
    @types.coroutine
    def wait():
        yield

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await wait()
        await send({"type": "http.response.body"})

    async def send(message):
        pass

    def wsgi(environ, start_response):
        start_response("200 OK", [])
        return [b"hello"]

    def end(request):
        with pytest.raises(StopIteration):
            request.send(None)

    asgi = talea_metrics.asgi.Middleware(app, registry=registry)
    requests = [asgi({"type": "http", "method": "GET"}, None, send) for _ in range(3)]
    for request in requests:
        request.send(None)
    metered = talea_metrics.wsgi.Middleware(wsgi, registry=registry)
    body = metered({"REQUEST_METHOD": "GET"}, lambda *_: None)
    child = os.fork()
    if child == 0:
        try:
            end(requests.pop())
            requests.pop().close()
            requests.clear()
            body.close()
            # Its own requests it does record.
            own = asgi({"type": "http", "method": "GET"}, None, send)
            own.send(None)
            own.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert in_flight(registry) == {("_unmatched",): 4}
    for request in requests:
        end(request)
    assert b"".join(body) == b"hello"
    assert in_flight(registry) == {}
    ends = {outcome: n for (_, _, outcome), n in outcomes(registry).items()}
    assert ends == {"complete": 4, "aborted": 1}


RECYCLED = Path(__file__).parents[1] / "examples" / "recycled_workers.py"


@pytest.mark.parametrize(("library", "status"), [("talea", 0), ("prometheus_client", 1)])
def test_replaced_workers_do_not_fill_the_memory(library, status, tmp_path):
    workers = os.environ.get("TALEA_WORKERS", "2000")
    program = f"mount -t tmpfs -o size=16m none {tmp_path} && exec {sys.executable} {RECYCLED} "
    program += f"{library} {tmp_path} --workers {workers}"
    command = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let a test mount anything")
    done = subprocess.run([*command, "sh", "-c", program], capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    if library == "prometheus_client":
        assert f"signal {signal.SIGBUS.value}" in done.stdout, done.stdout


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_any_start_method_count(method, region):
    environment = {**os.environ, "TALEA_REGION": region, "PYTHONPATH": str(Path(__file__).parent)}
    program = f"""
import multiprocessing
import counting
if __name__ == "__main__":
    counting.count(1)
    context = multiprocessing.get_context({method!r})
    with context.Pool(3) as pool:
        pool.map(counting.count, [1] * 50)
    import talea_metrics
    assert talea_metrics.REGISTRY.get_sample_value("counted_total", {{"by": "any"}}) == 51
"""
    path = Path(region).with_suffix(".py")
    path.write_text(program)
    try:
        subprocess.run([sys.executable, str(path)], env=environment, check=True, timeout=120)
    finally:
        path.unlink()


def test_a_fork_while_threads_count_loses_nothing():
    registry = talea_metrics.CollectorRegistry(size=4 << 20)
    orders = talea_metrics.Counter("orders", "Orders.", ["worker"], registry=registry)
    is_over = threading.Event()

    def count():
        n = 0
        while not is_over.is_set():
            n += 1
            orders.labels(n % 50).inc()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        child = os.fork()
        if child == 0:
            for n in range(100):
                orders.labels(f"child {n}").inc()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    is_over.set()
    for thread in threads:
        thread.join()
    for n in range(100):
        assert registry.get_sample_value("orders_total", {"worker": f"child {n}"}) == 50


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
program = '''
import talea_metrics
orders = talea_metrics.Counter("orders", "Orders.", ["by"])
orders.labels("x").inc()
assert b'orders_total{by="x"} 1' in talea_metrics.generate_latest()
'''
for is_imported in (False, True):
    if is_imported:
        import talea_metrics
        talea_metrics.Counter("own", "Own.").inc()
    failed = interpreters.run_string(interpreters.create(), program)
    print("counted" if failed is None else failed)
"""


def test_a_subinterpreter_counts_or_says_that_it_cannot():
    done = subprocess.run([sys.executable, "-c", SUBINTERPRETER], capture_output=True, text=True)
    lines = done.stdout.splitlines() or [done.stderr]
    for line in lines:
        assert line == "counted" or "subinterpreters" in line, done.stdout + done.stderr
    # From Python 3.12 on, such an interpreter has a lock of its own, and the state of objects relies on one lock.
    assert sys.version_info < (3, 12) or "counted" not in lines


def test_a_region_that_cannot_be_opened_is_an_error_that_names_it(tmp_path):
    other = tmp_path / "other.talea"
    other.write_bytes(b"something else" * 1000)
    with pytest.raises(OSError, match="other.talea"):
        talea_metrics.Counter("orders", "O.", registry=talea_metrics.CollectorRegistry(path=other))
    with pytest.raises(OSError, match="missing"):
        talea_metrics.generate_latest(talea_metrics.CollectorRegistry(path=tmp_path / "missing" / "shop.talea"))


ENDS_DURING_A_SCRAPE = """
import threading, talea_metrics
registry = talea_metrics.CollectorRegistry()
calls = []
def level():
    calls.append(threading.get_ident())
    return sum(range(1000))
def scrape():
    while True:
        talea_metrics.generate_latest(registry)
talea_metrics.Gauge("level", "Level.", registry=registry).set_function(level)
for _ in range(4):
    threading.Thread(target=scrape, daemon=True).start()
while len(set(calls)) < 4 or len(calls) < 400:
    threading.Event().wait(0.001)
"""


def test_a_process_may_end_while_its_gauges_are_computed():
    # A fault is seen in most of them.
    for _ in range(10):
        done = subprocess.run([sys.executable, "-c", ENDS_DURING_A_SCRAPE], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_a_forked_child_does_not_keep_the_port():
    server, thread = talea_metrics.start_http_server(0, "127.0.0.1", talea_metrics.CollectorRegistry())
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    try:
        server.shutdown()
        server.server_close()
        thread.join()
        again, thread = talea_metrics.start_http_server(server.server_address[1], "127.0.0.1")
        again.shutdown()
        again.server_close()
    finally:
        os.close(writer)
        os.waitpid(child, 0)
