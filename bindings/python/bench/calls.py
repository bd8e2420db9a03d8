"""Nanoseconds a call, of Talea and of prometheus_client in one process and in several.

The three run in processes of their own, in turns; the figures are medians of the rounds. A call of a
method of an extension class that does nothing is the floor: `dict.clear` on an empty dict does as little
as any method of the standard library.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CALLS = 300_000
LABELS = 3


def timed(call, calls=CALLS):
    began = time.perf_counter_ns()
    call(calls)
    return (time.perf_counter_ns() - began) / calls


def measure(library):
    """One round of one library, as JSON."""
    if library == "talea":
        import talea_metrics as metrics
    else:
        import prometheus_client as metrics

    names = [f"label{n}" for n in range(LABELS)]
    kept = metrics.Counter("kept", "Kept.")
    child = metrics.Counter("child", "Child.", names).labels("a", "b", "c")
    family = metrics.Counter("family", "Family.", names)
    histogram = metrics.Histogram("times_seconds", "Times.")
    empty = {}
    random.seed(1)
    # As production's: drawn with repeats, of varying length.
    values = [
        tuple(random.choice("abcdefgh") * random.randint(1, 24) for _ in range(LABELS))
        for _ in range(200)
    ]
    drawn = [random.choice(values) for _ in range(CALLS)]
    durations = [random.lognormvariate(-4, 1.5) for _ in range(CALLS)]

    def of_nothing(calls):
        for _ in range(calls):
            empty.clear()

    def of_kept(calls):
        for _ in range(calls):
            kept.inc()

    def of_child(calls):
        for _ in range(calls):
            child.inc()

    def of_labels(_):
        for one, two, three in drawn:
            family.labels(one, two, three).inc()

    def of_observe(_):
        for duration in durations:
            histogram.observe(duration)

    def of_time(calls):
        for _ in range(calls):
            with histogram.time():
                pass

    def of_loop(calls):
        for _ in range(calls):
            pass

    cases = {
        "an empty method": of_nothing,
        "inc(), no labels": of_kept,
        "inc(), kept child": of_child,
        f"labels({LABELS}).inc()": of_labels,
        "observe()": of_observe,
        "with time()": of_time,
    }
    for call in cases.values():
        call(1000)
    loop = min(timed(of_loop) for _ in range(3))
    return {name: timed(call) - loop for name, call in cases.items()}


def one_round(library):
    environment = dict(os.environ)
    environment.pop("TALEA_REGION", None)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        if library == "talea":
            # In a file, as workers have it.
            environment["TALEA_REGION"] = str(Path(folder) / "bench.talea")
        elif library == "prometheus_client, several processes":
            environment["PROMETHEUS_MULTIPROC_DIR"] = folder
        command = [sys.executable, __file__, "--measure", library]
        return json.loads(subprocess.check_output(command, env=environment))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure)))
        return
    libraries = [
        "talea",
        "prometheus_client, one process",
        "prometheus_client, several processes",
    ]
    rounds = [{library: one_round(library) for library in libraries} for _ in range(arguments.rounds)]
    print(f"Nanoseconds a call, medians of {arguments.rounds} rounds, Python {sys.version.split()[0]}\n")
    print("| | " + " | ".join(libraries) + " |")
    print("|---" * (1 + len(libraries)) + "|")
    for case in rounds[0]["talea"]:
        medians = (
            statistics.median(one[library][case] for one in rounds) for library in libraries
        )
        print(f"| {case} | " + " | ".join(f"{median:,.0f}" for median in medians) + " |")


if __name__ == "__main__":
    main()
