"""The examples, on real servers with several workers, of which some are killed under load."""

import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

EXAMPLES = Path(__file__).parents[1] / "examples"
# Where the talea program is; `scripts/python` says it.
TALEA = os.environ.get("TALEA_PROGRAM")


def get(port, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def wait_for(what, process):
    """Waits until something holds; the deadline only ends a test that has failed."""
    deadline = time.monotonic() + 120
    while True:
        try:
            found = what()
            if found:
                return found
        except (OSError, http.client.HTTPException):
            pass
        assert process.poll() is None, "the server has ended"
        assert time.monotonic() < deadline, "the server does not get there"
        time.sleep(0.02)


def values(page):
    """The samples of a page by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def total(page, name, **labels):
    """The sum of the samples of a name that have these labels."""
    return sum(
        value
        for (own, found), value in values(page).items()
        if own == name and set(labels.items()) <= set(found)
    )


def workers_of(process):
    path = f"/proc/{process.pid}/task/{process.pid}/children"
    return [int(pid) for pid in Path(path).read_text().split()]


class Served:
    """A server with its workers, and the agent beside it if there is a region in a file."""

    def __init__(self, command, port, region, folder):
        environment = {**os.environ, "PYTHONPATH": str(EXAMPLES), "PYTHONDONTWRITEBYTECODE": "1"}
        environment["TMPDIR"] = str(folder)
        if region:
            environment["TALEA_REGION"] = region
        self.port = port
        self.log = open(folder / "log", "w+b")
        out = {"stdout": self.log, "stderr": self.log}
        self.server = subprocess.Popen(
            [sys.executable, "-m", *command], env=environment, cwd=folder, **out
        )
        self.agent = None
        self.agent_port = port + 1
        if region and TALEA:
            listen = f"127.0.0.1:{self.agent_port}"
            self.agent = subprocess.Popen([TALEA, "serve", region, "--listen", listen], **out)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for process in [self.server, self.agent]:
            if process:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        if kind:
            self.log.seek(0)
            print(self.log.read().decode()[-4000:])
        self.log.close()

    def page(self):
        status, page = get(self.port, "/metrics")
        if status in (301, 307):
            status, page = get(self.port, "/metrics/")
        assert status == 200, (status, page)
        return page


def free_ports():
    """Two ports in a row that nobody listens on."""
    import socket

    while True:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                two.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port


def load(served, requests):
    """Sends requests from several threads, and kills two workers meanwhile. Returns how many were
    answered, and how many were not."""
    answered, unanswered = [], []
    begun = threading.Semaphore(0)

    def send(count):
        for _ in range(count):
            try:
                status, _ = get(served.port, "/orders/card", "POST")
                (answered if status == 200 else unanswered).append(status)
            except (OSError, http.client.HTTPException) as error:
                unanswered.append(error)
            begun.release()

    threads = [threading.Thread(target=send, args=(requests // 4,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        for _ in range(requests // 5):
            begun.acquire()
        # A scrape is answered at any time.
        served.page()
        os.kill(workers_of(served.server)[-1], signal.SIGKILL)
    for thread in threads:
        thread.join()
    return len(answered), len(unanswered)


UVICORN = ["uvicorn", "shop_fastapi:app", "--workers", "4", "--log-level", "warning", "--port"]
GUNICORN = ["gunicorn", "--workers", "4", "--log-level", "warning"]
SERVERS = {
    "fastapi": (UVICORN, True, "/orders/{method}"),
    "flask": ([*GUNICORN, "--preload", "shop_flask:app", "--bind"], False, "/orders/<method>"),
    "recycled": (
        [*GUNICORN, "--max-requests", "40", "--preload", "shop_flask:app", "--bind"],
        False,
        "/orders/<method>",
    ),
    "django": ([*GUNICORN, "shop_django:application", "--bind"], True, "/orders/<str:method>"),
}


@pytest.mark.parametrize("name", SERVERS)
def test_nothing_is_lost_when_workers_are_killed(name, region, tmp_path):
    command, has_file, route = SERVERS[name]
    port = free_ports()
    command = [*command, str(port) if name == "fastapi" else f"127.0.0.1:{port}"]
    with Served(command, port, region if has_file else None, tmp_path) as served:
        wait_for(lambda: served.page(), served.server)
        wait_for(lambda: len(workers_of(served.server)) >= 4, served.server)
        answered, unanswered = load(served, 400)
        assert answered >= 300
        # A request ends a moment after the client has its answer.
        in_flight = "http_requests_in_flight"
        wait_for(lambda: total(served.page(), in_flight, route=route) == 0, served.server)
        # A worker may have died between its count and its answer,
        counted = total(served.page(), "shop_orders_total")
        assert answered <= counted <= answered + unanswered
        # or between its answer and the request's end: two were killed, each with few requests.
        done = total(served.page(), "http_request_outcomes_total", route=route)
        assert counted - 8 <= done <= counted
        # The dead are in no gauge, and each scrape says so, whichever worker answers.
        for _ in range(8):
            page = served.page()
            assert total(page, "shop_orders_total") == counted
            assert total(page, "shop_paying") == 0
            assert total(page, in_flight, route=route) == 0
        if served.agent:
            seen = wait_for(lambda: get(served.agent_port, "/metrics")[1], served.agent)
            assert total(seen, "shop_orders_total") == counted
            assert total(seen, "http_request_outcomes_total", route=route) == done
            assert total(seen, "shop_paying") == 0


def test_celery_counts_in_all_of_its_processes(region, tmp_path):
    folder = tmp_path / "jobs"
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES), "JOBS_FOLDER": str(folder)}
    environment |= {"TALEA_REGION": region, "PYTHONDONTWRITEBYTECODE": "1"}
    options = {"env": environment, "cwd": tmp_path}
    send = "import jobs_celery\nfor n in range(40): jobs_celery.resize.delay('picture')"
    subprocess.run([sys.executable, "-c", send], check=True, **options)
    command = ["celery", "--app", "jobs_celery", "worker", "--concurrency", "4", "--pool", "prefork"]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    with open(tmp_path / "log", "w+b") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", *command], stdout=log, stderr=log, **options
        )
        try:
            import talea_metrics

            registry = talea_metrics.CollectorRegistry(path=region)

            def done():
                kind = {"kind": "picture"}
                return registry.get_sample_value("jobs_done_total", kind) == 40

            wait_for(done, worker)
            # A job's time is observed after it has counted.
            wait_for(lambda: registry.get_sample_value("jobs_seconds_count") == 40, worker)
        finally:
            worker.terminate()
            worker.wait()


UWSGI_APP = """
import talea_metrics

served = talea_metrics.Counter("served", "Served.")


def application(environ, start_response):
    served.inc()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [talea_metrics.generate_latest()]
"""


@pytest.mark.parametrize("hooks", [[], ["--py-call-osafterfork"], ["--py-call-osafterfork", "--enable-threads"]])
def test_workers_of_uwsgi_count_together_and_show_no_worker_of_their_own(hooks, tmp_path):
    (tmp_path / "served.py").write_text(UWSGI_APP)
    port = free_ports()
    command = [str(Path(sys.executable).with_name("uwsgi")), "--http-socket", f"127.0.0.1:{port}"]
    command += ["--master", "--processes", "3", "--module", "served", "--die-on-term", *hooks]
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=output, stderr=output)
    try:
        wait_for(lambda: get(port, "/")[0] == 200, process)
        pages = [get(port, "/")[1] for _ in range(30)]
    finally:
        process.terminate()
        process.wait(60)
    counts = [total(page, "served_total") for page in pages]
    assert counts == sorted(counts) and counts[-1] >= 31
    assert not any("process_" in page or "python_gc_" in page for page in pages)
    assert all("python_info" in page for page in pages)
    assert "Traceback" not in log.read_text() and "un-acquired" not in log.read_text()
