"""What is removed is gone, and what nobody holds takes no place."""

import os
import random
import signal
import subprocess
import sys
import threading

import pytest

import talea_metrics


KINDS = [
    ("Counter", lambda child: child.inc(), "made_total", 1),
    ("Gauge", lambda child: child.set(1), "made", 1),
    ("Histogram", lambda child: child.observe(1), "made_count", 1),
    ("Summary", lambda child: child.observe(1), "made_count", 1),
]


@pytest.mark.parametrize("where", ["memory", "file"])
@pytest.mark.parametrize("kind, use, sample, value", KINDS, ids=[kind[0] for kind in KINDS])
@pytest.mark.parametrize("how", ["remove", "remove_by_labels", "clear"])
def test_label_sets_one_after_another_never_overflow(where, kind, use, sample, value, how, region):
    registry = talea_metrics.CollectorRegistry(path=region if where == "file" else None, size=4 << 20)
    made = getattr(talea_metrics, kind)("made", "Made.", ["of"], registry=registry, limit=50)
    for n in range(2_000):
        of = str(n)
        use(made.labels(of))
        if how == "remove":
            made.remove(of)
        elif how == "remove_by_labels":
            made.remove_by_labels({"of": of})
        else:
            made.clear()
    use(made.labels("last"))
    assert [s.labels["of"] for f in made.collect() for s in f.samples if s.name == sample] == ["last"]
    assert registry.get_sample_value(sample, {"of": "last"}) == value


def test_what_a_removed_child_counts_is_seen_nowhere(registry):
    made = talea_metrics.Counter("made", "Made.", ["of"], registry=registry)
    old = made.labels("a")
    old.inc(5)
    made.remove("a")
    old.inc(7)
    assert registry.get_sample_value("made_total", {"of": "a"}) is None
    new = made.labels("a")
    new.inc(2)
    old.inc(7)
    assert registry.get_sample_value("made_total", {"of": "a"}) == 2
    assert made.labels("a") is new


@pytest.mark.parametrize("use", ["track_inprogress", "count_exceptions", "set_function"])
def test_an_object_of_a_child_keeps_its_series(registry, use):
    kind = talea_metrics.Counter if use == "count_exceptions" else talea_metrics.Gauge
    made = kind("made", "Made.", ["of"], registry=registry, limit=5)
    for n in range(20):
        argument = [lambda: 4] if use == "set_function" else []
        block = getattr(made.labels(n), use)(*argument)
        if block is not None:
            made.remove(n)
            made.labels(f"other {n}")
            with pytest.raises(ValueError), block:
                raise ValueError
            assert registry.get_sample_value("made_total", {"of": f"other {n}"}) in (None, 0)
            made.remove(f"other {n}")
        else:
            assert registry.get_sample_value("made", {"of": str(n)}) == 4
            made.remove(n)
    assert [s for family in made.collect() for s in family.samples] == []


@pytest.mark.parametrize("mode", ["all", "liveall", "max", "min", "livemax", "livemin", "sum", "livesum", "mostrecent"])
@pytest.mark.parametrize("remover", [0, 1])
@pytest.mark.parametrize("how", ["remove", "remove_by_labels", "clear"])
def test_gauges_of_processes_are_gone_whoever_removes_them(region, mode, remover, how):
    # Each registry counts as a process.
    registries = [talea_metrics.CollectorRegistry(path=region) for _ in range(2)]
    gauges = [
        talea_metrics.Gauge("level", "Level.", ["of"], multiprocess_mode=mode, registry=registry)
        for registry in registries
    ]
    for n, gauge in enumerate(gauges):
        gauge.labels("a").set(n + 7)
    if how == "remove":
        gauges[remover].remove("a")
    elif how == "remove_by_labels":
        gauges[remover].remove_by_labels({"of": "a"})
    else:
        gauges[remover].clear()
    for registry in registries:
        assert b'of="a"' not in talea_metrics.generate_latest(registry)
    gauges[remover].labels("a").set(3)
    values = {
        s.value for family in registries[0].collect() for s in family.samples if s.labels.get("of") == "a"
    }
    assert values == {3}


def test_threads_that_make_hold_and_remove_lose_nothing_that_stays(registry):
    made = talea_metrics.Counter("made", "Made.", ["of"], registry=registry, limit=40)
    over = threading.Event()

    def wander(seed):
        chosen = random.Random(seed)
        held = []
        while not over.is_set():
            of = f"passing {chosen.randrange(8)}"
            act = chosen.randrange(4)
            if act == 0:
                held = [*held[-7:], made.labels(of)]
            elif act == 1:
                made.remove(of)
            elif act == 2 and held:
                held.pop(chosen.randrange(len(held)))
            else:
                for child in held:
                    child.inc()

    def count():
        for _ in range(5_000):
            made.labels("stays").inc()

    wanderers = [threading.Thread(target=wander, args=(seed,)) for seed in range(3)]
    counters = [threading.Thread(target=count) for _ in range(2)]
    for thread in wanderers + counters:
        thread.start()
    for thread in counters:
        thread.join()
    over.set()
    for thread in wanderers:
        thread.join()
    assert registry.get_sample_value("made_total", {"of": "stays"}) == 10_000
    for n in range(8):
        made.remove(f"passing {n}")
        made.labels(f"passing {n}").inc(3)
        assert registry.get_sample_value("made_total", {"of": f"passing {n}"}) == 3
    assert registry.get_sample_value("made_total", {"otel_metric_overflow": "true"}) is None


WANDER = """
import random, sys
import talea_metrics
made = talea_metrics.Counter("made", "Made.", ["of"], limit=200)
chosen = random.Random(int(sys.argv[1]))
held = []
counted = 0
while True:
    of = f"{sys.argv[1]} {chosen.randrange(10**9)}"
    held = [*held[-3:], made.labels(of)]
    held[0].inc()
    made.remove(of)
    made.labels("stays").inc()
    counted += 1
    if counted % 50 == 0:
        print(counted, flush=True)
"""


def test_processes_that_are_killed_leave_their_counts_and_no_label_sets(region):
    registry = talea_metrics.CollectorRegistry(path=region)
    made = talea_metrics.Counter("made", "Made.", ["of"], registry=registry, limit=200)
    made.labels("stays")
    counted = 0
    for round in range(3):
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", WANDER, str(3 * round + n)],
                env={**os.environ, "TALEA_REGION": region},
                stdout=subprocess.PIPE,
                text=True,
            )
            for n in range(3)
        ]
        for worker in workers:
            for _ in range(8):
                worker.stdout.readline()
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
            lines = worker.stdout.read().split()
            worker.wait()
            counted += int(lines[-1]) if lines else 400
    value = registry.get_sample_value("made_total", {"of": "stays"})
    assert counted <= value < counted + 9 * 51
    for n in range(400):
        made.labels(n).inc()
        made.remove(n)
    assert registry.get_sample_value("made_total", {"otel_metric_overflow": "true"}) is None
