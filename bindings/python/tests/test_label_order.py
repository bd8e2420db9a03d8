"""Pages have the labels of a sample in the order of their names, as those of the official client do."""

import ctypes
import itertools
import os
import subprocess

import prometheus_client
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import talea_metrics
from talea_metrics.openmetrics.exposition import generate_latest as generate_openmetrics


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "method", "status", "z", "é", "a.b", "B"]), unique=True, max_size=5),
    st.lists(st.sampled_from(["", "x", '"', "\\", "\n", '",b="', "}", "{", "# ", "é"]), min_size=5, max_size=5),
)
def test_pages_are_those_of_the_official_client(names, values):
    pages = []
    for library in (talea_metrics, prometheus_client):
        registry = library.CollectorRegistry()
        for kind, update in [("Counter", "inc"), ("Gauge", "set"), ("Histogram", "observe"), ("Summary", "observe")]:
            metric = getattr(library, kind)(f"m_{kind.lower()}", "{b} # a", names, registry=registry)
            getattr(metric.labels(*values[: len(names)]) if names else metric, update)(3)
        text = library.generate_latest(registry, escaping="allow-utf-8").decode()
        lines = [line for line in text.splitlines() if "_created" not in line and not line.startswith("#")]
        # The two name thresholds and buckets in one way.
        pages.append(sorted(lines))
    assert pages[0] == pages[1]


def test_labels_of_exemplars_and_quoted_names_are_sorted(registry):
    sizes = talea_metrics.Histogram("sizes.of", "S.", ["z", "m.x", "b"], registry=registry, buckets=[1])
    sizes.labels("1", "2", "3").observe(0.5, {"span": "s", "id": "i"})
    page = talea_metrics.exposition.page(registry, "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8")
    assert '{"sizes.of_bucket",b="3",le="1.0","m.x"="2",z="1"} 1.0 # {id="i",span="s"} 0.5' in page[0].decode()


@pytest.mark.parametrize("names", list(itertools.permutations(["country", "method", "status"])))
def test_any_order_of_names_gives_one_page(registry, names):
    orders = talea_metrics.Counter("orders", "O.", names, registry=registry)
    values = {"country": "pe", "method": "card", "status": "ok"}
    orders.labels(*(values[name] for name in names)).inc()
    line = b'orders_total{country="pe",method="card",status="ok"} 1.0\n'
    assert line in talea_metrics.generate_latest(registry)
    assert line in generate_openmetrics(registry)
    assert orders.labels(**values) is orders.labels(*(values[name] for name in names))
    orders.remove(*(values[name] for name in names))
    assert b"country=" not in talea_metrics.generate_latest(registry)


@pytest.mark.skipif("TALEA_PROGRAM" not in os.environ, reason="needs the program talea")
def test_a_region_has_the_labels_in_the_order_of_their_definition(region):
    """So that it is one definition for processes of other languages."""
    registry = talea_metrics.CollectorRegistry(path=region)
    talea_metrics.Counter("orders", "O.", ["method", "country"], registry=registry).labels("card", "pe").inc()
    shown = subprocess.run([os.environ["TALEA_PROGRAM"], "inspect", region, "--family", "orders_total"], capture_output=True, check=True)
    assert shown.stdout.index(b"method") < shown.stdout.index(b"country")


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("len", ctypes.c_size_t)]

    def __init__(self, text=""):
        super().__init__(text.encode(), len(text.encode()))


class OpenOptions(ctypes.Structure):
    """talea_open_options, with the fields after the path as one."""

    _fields_ = [("size", ctypes.c_size_t), ("path", Text), ("rest", ctypes.c_uint64 * 3)]


class FamilyOptions(ctypes.Structure):
    """talea_family_options, with the fields after the flags as one."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("kind", ctypes.c_uint32),
        ("unit", ctypes.c_uint32),
        ("name", Text),
        ("help", Text),
        ("label_names", ctypes.POINTER(Text)),
        ("label_count", ctypes.c_size_t),
        ("flags", ctypes.c_uint32),
        ("combining", ctypes.c_uint32),
        ("rest", ctypes.c_uint64 * 10),
    ]


class Double(ctypes.Structure):
    """A talea_number."""

    _fields_ = [("kind", ctypes.c_uint64), ("value", ctypes.c_double)]


FLOAT_COUNTER, ADD = 2, 1
LIBRARY = os.environ.get("TALEA_LIBRARY", "")
# Of the extension for PHP: permanent, lenient, not striped, beside other definitions.
FLAGS_OF_PHP = 8 | 64 | 128 | 256


def count_through_the_c_abi(path, flags, labels, amount):
    library, message = ctypes.CDLL(LIBRARY), ctypes.create_string_buffer(512)
    registry, family = ctypes.c_void_p(), ctypes.c_void_p()
    opening = OpenOptions(ctypes.sizeof(OpenOptions), Text(path))
    assert library.talea_open(ctypes.byref(opening), ctypes.byref(registry), message, 512) == 0, message.value
    names, values = ((Text * len(labels))(*map(Text, texts)) for texts in (labels, labels.values()))
    size = ctypes.sizeof(FamilyOptions)
    options = FamilyOptions(size, FLOAT_COUNTER, 0, Text("orders"), Text("O."), names, len(labels), flags)
    registered = library.talea_register(registry, ctypes.byref(options), ctypes.byref(family), message, 512)
    assert registered == 0, message.value
    assert library.talea_record(family, values, ctypes.c_size_t(len(labels)), ADD, Double(0, amount)) == 0


@pytest.mark.skipif(not os.path.exists(LIBRARY), reason="needs the library of the C ABI")
@pytest.mark.parametrize("flags", [0, FLAGS_OF_PHP])
@pytest.mark.parametrize("order, shown", [(["country", "method"], 7), (["method", "country"], 3)])
def test_another_language_counts_in_the_same_series_if_it_has_the_same_order(region, flags, order, shown):
    """In another order it is another definition, of which a page shows the newest: each value at its own name."""
    registry = talea_metrics.CollectorRegistry(path=region)
    orders = talea_metrics.Counter("orders", "O.", ["country", "method"], registry=registry)
    orders.labels("pe", "card").inc(4)
    values = {"country": "pe", "method": "card"}
    count_through_the_c_abi(region, flags, {name: values[name] for name in order}, 3)
    for page in (talea_metrics.generate_latest(registry), generate_openmetrics(registry)):
        lines = [line for line in page.decode().splitlines() if line.startswith("orders_total")]
        assert lines == [f'orders_total{{country="pe",method="card"}} {shown}.0']
