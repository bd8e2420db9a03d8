"""Milliseconds a scrape of 4,400 series that eight workers write, after other workers died, and the memory of a
living worker.

The workers are forked, count in every series, and wait or are killed. Talea and prometheus_client run in
processes of their own; the figures are medians of the scrapes of one run.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERIES = 4_400
LIVING = 8
DEAD = [0, 50, 400]
SCRAPES = 5


def proportional(pid):
    """The memory of a process in KiB; of pages that several have, its part (proportional set size)."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))


def measure(library, dead):
    """Prints the times of scrapes, in milliseconds, and the memory of a living worker, in KiB."""
    if library == "talea":
        import talea_metrics

        orders = talea_metrics.Counter("orders", "Orders.", ["first", "second"])

        def scrape():
            return talea_metrics.generate_latest()
    else:
        import prometheus_client
        from prometheus_client import multiprocess

        orders = prometheus_client.Counter("orders", "Orders.", ["first", "second"])

        def scrape():
            registry = prometheus_client.CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)
            return prometheus_client.generate_latest(registry)

    def start():
        ready, says = os.pipe()
        child = os.fork()
        if child == 0:
            for n in range(SERIES):
                orders.labels(f"first {n % 44}", f"second {n // 44}").inc()
            os.write(says, b"!")
            signal.pause()
        os.close(says)
        assert os.read(ready, 1) == b"!"
        os.close(ready)
        return child

    def end(child):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    for _ in range(dead):
        end(start())
    children = [start() for _ in range(LIVING)]
    memory = sum(proportional(child) for child in children) / LIVING
    times = []
    for _ in range(SCRAPES):
        began = time.perf_counter_ns()
        page = scrape()
        times.append((time.perf_counter_ns() - began) / 1e6)
    for child in children:
        end(child)
    lines = [line for line in page.decode().splitlines() if line.startswith("orders_total{")]
    counted = sum(float(line.rsplit(" ", 1)[1]) for line in lines)
    assert (len(lines), counted) == (SERIES, SERIES * (dead + LIVING)), (len(lines), counted)
    print(json.dumps([times, memory]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure[0], int(arguments.measure[1]))
        return
    print(f"Milliseconds a scrape of {SERIES:,} series, {LIVING} living workers\n")
    print("| dead workers | Talea | prometheus_client | KiB a worker, Talea | prometheus_client |")
    print("|---|---|---|---|---|")
    for dead in DEAD:
        medians = []
        memory = []
        for library in ["talea", "prometheus_client"]:
            with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
                environment = {
                    **os.environ,
                    "TALEA_REGION": str(Path(folder) / "bench.talea"),
                    "PROMETHEUS_MULTIPROC_DIR": folder,
                }
                command = [sys.executable, __file__, "--measure", library, str(dead)]
                times, kib = json.loads(subprocess.check_output(command, env=environment))
                medians.append(f"{statistics.median(times):,.1f}")
                memory.append(f"{kib:,.0f}")
        print("| " + " | ".join([str(dead), *medians, *memory]) + " |", flush=True)


if __name__ == "__main__":
    main()
