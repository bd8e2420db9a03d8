"""Several processes, one region: forked, started anew, and killed."""

import os
import signal
import subprocess
import sys

import pytest

import talea

COUNT = """
import sys
import talea
orders = talea.Counter("orders", "Orders.", ["worker"])
running = talea.Gauge("running", "Running.", multiprocess_mode="livesum")
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
    registry = talea.CollectorRegistry(path=region)
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


def test_forked_children_count_into_their_parents_memory():
    registry = talea.CollectorRegistry(size=4 << 20)
    orders = talea.Counter("orders", "Orders.", ["worker"], registry=registry)
    level = talea.Gauge("level", "Level.", multiprocess_mode="livesum", registry=registry)
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


def test_a_region_that_cannot_be_opened_is_an_error_that_names_it(tmp_path):
    other = tmp_path / "other.talea"
    other.write_bytes(b"something else" * 1000)
    with pytest.raises(OSError, match="other.talea"):
        talea.Counter("orders", "O.", registry=talea.CollectorRegistry(path=other))
    with pytest.raises(OSError, match="missing"):
        talea.generate_latest(talea.CollectorRegistry(path=tmp_path / "missing" / "shop.talea"))
