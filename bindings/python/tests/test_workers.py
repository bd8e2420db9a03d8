"""Libraries that count in registries of their own, on servers with several workers."""

import os
import subprocess
import sys
import tempfile

import pytest
from test_servers import get, wait_for

APP = """
import flask, os, sys
import talea_metrics
talea_metrics.install_as_prometheus_client()
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_flask_exporter.multiprocess import GunicornInternalPrometheusMetrics

app = flask.Flask(__name__)
own = CollectorRegistry()
done = Counter("done", "Done.", ["kind"], registry=own)
nowhere = Gauge("nowhere", "In no registry.", registry=None, multiprocess_mode="livesum")
other = Counter("other", "Of the default registry.")
if os.environ.get("EXPORTER"):
    GunicornInternalPrometheusMetrics(app)

@app.get("/count")
def count():
    done.labels("a").inc()
    nowhere.inc()
    other.inc()
    return str(os.getpid())

@app.get("/own")
def page():
    return generate_latest(own).decode()

@app.get("/all")
def whole():
    return generate_latest().decode()
"""


def served(environment, use, *options, workers=3):
    """Runs the application under gunicorn, and returns what it wrote to its log."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        with open(f"{folder}/service.py", "w") as file:
            file.write(APP)
        environment = {name: value.format(folder=folder) for name, value in environment.items()}
        command = [sys.executable, "-m", "gunicorn", "-w", str(workers), "-b", "127.0.0.1:0", *options, "service:app"]
        with open(f"{folder}/log", "w+") as log:
            process = subprocess.Popen(command, cwd=folder, env={**os.environ, **environment}, stderr=log)

            def port():
                with open(log.name) as lines:
                    listening = [line for line in lines if "Listening at" in line]
                return int(listening[0].split("127.0.0.1:")[1].split()[0])

            try:
                found = wait_for(lambda: os.path.exists(log.name) and port_or_none(port), process)
                wait_for(lambda: get(found, "/all")[0] == 200, process)
                use(found, process)
            finally:
                process.terminate()
                process.wait(60)
            log.seek(0)
            return log.read()


def port_or_none(port):
    try:
        return port()
    except IndexError:
        return None


def counted(port, process):
    """Counts 20 times, by more than one worker."""
    workers = set()
    count = 0
    while count < 20 or len(workers) < 2:
        workers.add(get(port, "/count")[1])
        count += 1
        assert process.poll() is None and count < 10_000
    return count


@pytest.mark.parametrize("variable", ["PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"])
def test_metrics_of_an_own_registry_or_of_none_are_those_of_all_workers(variable):
    def use(port, process):
        count = counted(port, process)
        own, whole = get(port, "/own")[1], get(port, "/all")[1]
        assert f'done_total{{kind="a"}} {count}.0' in own and "other" not in own and "nowhere" not in own
        for line in [f'done_total{{kind="a"}} {count}.0', f"nowhere {count}.0", f"other_total {count}.0"]:
            assert line in whole

    assert "RuntimeWarning" not in served({variable: "{folder}"}, use)


def test_the_exporter_of_flask_for_gunicorn_shows_all_workers():
    def use(port, process):
        count = counted(port, process)
        page = get(port, "/metrics")[1]
        line = f'flask_http_request_total{{method="GET",status="200"}} '
        found = [float(of[len(line):]) for of in page.splitlines() if of.startswith(line)]
        assert len(found) == 1 and found[0] >= count, page

    served({"PROMETHEUS_MULTIPROC_DIR": "{folder}", "EXPORTER": "1"}, use)


@pytest.mark.parametrize(
    ("environment", "options", "workers", "is_warned"),
    [
        ({}, [], 3, True),
        ({}, [], 1, False),
        ({}, ["--preload"], 3, False),
        ({"TALEA_REGION": "{folder}/shop.talea"}, [], 3, False),
    ],
)
def test_workers_that_count_each_for_itself_are_a_warning_with_the_remedy(environment, options, workers, is_warned):
    def use(port, process):
        for _ in range(40):
            get(port, "/all")

    log = served(environment, use, *options, workers=workers)
    warned = log.count("Set TALEA_REGION to a file")
    assert (1 <= warned <= workers) if is_warned else warned == 0, log
