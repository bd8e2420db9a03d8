"""Requests a second of Starlette, FastAPI and Flask: bare, with Talea, and with other middleware.

Each variant is a server of one process, a new one in each round. wrk loads them in turns, with one thread and
32 connections; the figures are medians of the rounds: the share of the bare throughput, and the CPU time of
the server for each request. The variant `empty` is a middleware that does nothing.

Loops of the lowest scheduling class keep the CPUs from going idle. Without them a virtual machine measures how
long it takes to wake wrk: that costs the server several microseconds if its answers are a little further apart
than an idle CPU polls for work, and nothing if they are closer.
"""

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

VARIANTS = {
    "starlette": ["bare", "empty", "talea", "starlette_exporter", "instrumentator"],
    "fastapi": ["bare", "empty", "talea", "starlette_exporter", "instrumentator"],
    "flask": ["bare", "talea", "prometheus_flask_exporter"],
}
PATH = "/items/7"


def application(framework, variant):
    """The application of a variant; called in the server."""
    if framework == "flask":
        import flask

        app = flask.Flask("bench")

        @app.get("/items/<int:item>")
        def show(item):
            return "hello"

        for n in range(20):
            app.add_url_rule(f"/other{n}/<x>", f"other{n}", lambda x: "hello")
        if variant == "talea":
            from talea_metrics.wsgi import meter_flask

            meter_flask(app)
        elif variant == "prometheus_flask_exporter":
            from prometheus_flask_exporter import PrometheusMetrics

            PrometheusMetrics(app, group_by="url_rule")
        return app
    if framework == "starlette":
        from starlette.applications import Starlette
        from starlette.responses import PlainTextResponse
        from starlette.routing import Route

        async def show(request):
            return PlainTextResponse("hello")

        others = [Route(f"/other{n}/{{x}}", show) for n in range(20)]
        app = Starlette(routes=[*others[:10], Route("/items/{item:int}", show), *others[10:]])
    else:
        from fastapi import FastAPI
        from fastapi.responses import PlainTextResponse

        app = FastAPI()

        async def show(item: int = 0):
            return PlainTextResponse("hello")

        for n in range(20):
            app.get(f"/other{n}/{{x}}")(show)
        app.get("/items/{item}")(show)
    if variant == "talea":
        from talea_metrics.asgi import Middleware

        app.add_middleware(Middleware)
    elif variant == "empty":
        app.add_middleware(Empty)
    elif variant == "starlette_exporter":
        from starlette_exporter import PrometheusMiddleware

        app.add_middleware(PrometheusMiddleware)
    elif variant == "instrumentator":
        from prometheus_fastapi_instrumentator import Instrumentator

        Instrumentator().instrument(app)
    return app


class Empty:
    """A middleware that does nothing: what any costs."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        await self.app(scope, receive, send)


def __getattr__(name):
    # The servers import these: `bench_http:starlette__bare` and so on.
    framework, _, variant = name.partition("__")
    if framework not in VARIANTS:
        raise AttributeError(name)
    # The server asks more than once.
    return globals().setdefault(name, application(framework, variant))


class Server:
    def __init__(self, framework, variant):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}{PATH}"
        of = f"bench_http:{framework}__{variant}"
        if framework == "flask":
            command = ["gunicorn", of, "--bind", f"127.0.0.1:{port}", "--log-level", "error"]
            command += ["--worker-class", "gthread", "--threads", "1", "--keep-alive", "60"]
        else:
            command = ["uvicorn", of, "--port", str(port), "--log-level", "error", "--no-access-log"]
        folder = Path(__file__).parent
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        self.process = subprocess.Popen([sys.executable, "-m", *command], env=environment)
        deadline = time.monotonic() + 60
        while True:
            try:
                assert urllib.request.urlopen(self.url).read() == b"hello"
                return
            except OSError:
                assert time.monotonic() < deadline and self.process.poll() is None, self.url
                time.sleep(0.05)

    def cpu(self):
        """Seconds of CPU that the server and its workers have used: their own, and the kernel's."""
        pids = [self.process.pid]
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        pids += [int(pid) for pid in children.split()]
        used = [0, 0]
        for pid in pids:
            parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used = [used[n] + int(parts[11 + n]) for n in range(2)]
        return [ticks / os.sysconf("SC_CLK_TCK") for ticks in used]

    def load(self, seconds):
        """Requests a second, and microseconds of CPU a request: the server's own, and the kernel's."""
        before = self.cpu()
        command = ["wrk", "--threads", "1", "--connections", "32", "--duration", f"{seconds}s", self.url]
        out = subprocess.check_output(command, text=True)
        after = self.cpu()
        assert "Non-2xx" not in out, out
        count = int(re.search(r"(\d+) requests in", out)[1])
        rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])
        return rate, *((after[n] - before[n]) / count * 1e6 for n in range(2))

    def end(self):
        self.process.terminate()
        self.process.wait()


def measured(framework, variant, seconds):
    """A round of a variant, on a server of its own: two processes of one program differ by some percent."""
    server = Server(framework, variant)
    server.load(1)
    figures = server.load(seconds)
    server.end()
    return figures


def direct(rounds, requests=8000):
    """Microseconds of CPU a request of the frameworks for ASGI, called without a server, in turns."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(message):
        pass

    async def once(app):
        began = time.thread_time()
        for _ in range(requests):
            await app(dict(scope), receive, send)
        return (time.thread_time() - began) / requests * 1e6

    async def compared(framework):
        variants = ["bare", "empty", "talea"]
        apps = {variant: application(framework, variant) for variant in variants}
        figures = [{one: await once(app) for one, app in apps.items()} for _ in range(rounds)]
        for variant in variants:
            took = statistics.median(one[variant] for one in figures)
            share = statistics.median(one["bare"] / one[variant] for one in figures)
            print(f"| {framework} | {variant} | {took:.1f} | {share:.3f} |", flush=True)

    import uvloop

    print("| framework | middleware | µs of CPU a request, without a server | bare / this |")
    print("|---|---|---|---|")
    for framework in ("starlette", "fastapi"):
        uvloop.run(compared(framework))


def spin():
    """A process for each CPU that runs only where nothing else does."""
    program = "import os\nos.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass"
    return [subprocess.Popen([sys.executable, "-c", program]) for _ in range(os.cpu_count())]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", choices=[*VARIANTS])
    arguments = parser.parse_args()
    if arguments.only is None:
        direct(25, 2000)
        print()
    spinners = spin()
    try:
        compare(arguments)
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def compare(arguments):
    print("| framework | middleware | of bare | µs of CPU a request | the kernel's | requests a second |")
    print("|---|---|---|---|---|---|")
    for framework, variants in VARIANTS.items():
        if arguments.only not in (None, framework):
            continue
        rounds = []
        for n in range(arguments.rounds):
            order = variants if n % 2 == 0 else variants[::-1]
            rounds.append({one: measured(framework, one, arguments.seconds) for one in order})
        for variant in variants:
            share = statistics.median(one[variant][0] / one["bare"][0] for one in rounds)
            rate, user, kernel = (
                statistics.median(one[variant][n] for one in rounds) for n in range(3)
            )
            figures = f"{share:.3f} | {user:.1f} | {kernel:.1f} | {rate:,.0f}"
            print(f"| {framework} | {variant} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
