"""Registries, custom collectors, pages, servers and pushes."""

import contextlib
import gzip
import http.server
import importlib.metadata
import io
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest.mock
import urllib.error
import urllib.request

import prometheus_client
import prometheus_client.openmetrics.parser as their_openmetrics
import prometheus_client.parser as their_parser
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

import talea_metrics
from talea_metrics import parser
from talea_metrics.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from talea_metrics.multiprocess import MultiProcessCollector
from talea_metrics.openmetrics import parser as openmetrics_parser
from talea_metrics.openmetrics.exposition import generate_latest as generate_openmetrics

# When a wait for something that takes milliseconds is given up, in seconds.
LONGEST = 60


class Custom:
    def collect(self):
        queues = GaugeMetricFamily("queue_length", 'Jobs\nin a "queue" \\.', labels=["queue"])
        queues.add_metric(['a "b" \\\n'], 3)
        yield queues
        yield CounterMetricFamily("jobs_total", "Jobs.", 7, created=1.5, exemplar={"trace_id": "x"})
        yield HistogramMetricFamily("job_seconds", "Time.", [("0.5", 1), ("+Inf", 2)], 3)
        yield InfoMetricFamily("build", "Build.", {"version": "1"})


def test_custom_collectors_are_on_every_page(registry):
    registry.register(Custom())
    talea_metrics.Counter("orders", "Orders.", registry=registry).inc(2)
    for page, parse in [
        (talea_metrics.generate_latest(registry), text_string_to_metric_families),
        (generate_openmetrics(registry), openmetrics),
    ]:
        families = {family.name: family for family in parse(page.decode())}
        values = {s.name: s.value for family in families.values() for s in family.samples}
        assert values["orders_total"] == 2
        assert values["jobs_total"] == 7
        assert values["job_seconds_sum"] == 3
        assert values["build_info"] == 1
        queue = families["queue_length"]
        assert queue.samples[0].labels == {"queue": 'a "b" \\\n'}
        assert queue.documentation == 'Jobs\nin a "queue" \\.'
    assert registry.get_sample_value("jobs_total") == 7


def test_pages_of_custom_families_are_those_of_the_official_client():
    ours = talea_metrics.CollectorRegistry()
    theirs = prometheus_client.CollectorRegistry()
    for registry in (ours, theirs):
        registry.register(Custom())
    assert talea_metrics.generate_latest(ours) == prometheus_client.generate_latest(theirs)


def test_a_help_that_ends_with_a_carriage_return_can_be_read():
    registry = talea_metrics.CollectorRegistry()
    collector = Custom()
    collector.collect = lambda: [GaugeMetricFamily("level", "Level.\r", 1)]
    registry.register(collector)
    pages = [(talea_metrics.generate_latest(registry), parser), (generate_openmetrics(registry), openmetrics_parser)]
    for page, ours in pages:
        (family,) = ours.text_string_to_metric_families(page.decode())
        assert family.documentation == "Level."


class OddNames:
    """Families and labels whose names are equal once they are escaped."""

    def __init__(self, labels=("a.b", "a_b", "a-b", "a:b", "1a", "ü", "..", "x")):
        self.labels = labels

    def collect(self):
        for name in ("x.y", "x_y", "x y", "9x", "in.region"):
            family = GaugeMetricFamily(name, "G.", labels=self.labels)
            family.add_metric([str(n) for n, _ in enumerate(self.labels)], 1)
            yield family


@pytest.mark.parametrize("escaping", ["underscores", "dots", "values", "allow-utf-8"])
@pytest.mark.parametrize("kind", ["text/plain;version=1.0.0", "application/openmetrics-text;version=1.0.0"])
@pytest.mark.parametrize("counts", [False, True])
def test_names_of_custom_collectors_stay_unique_when_they_are_escaped(registry, kind, escaping, counts):
    if counts:
        talea_metrics.Gauge("in_region", "R.", registry=registry).inc()
    registry.register(OddNames())
    page = talea_metrics.exposition.page(registry, f"{kind};escaping={escaping}")[0].decode()
    reader = openmetrics_parser if kind.startswith("application") else parser
    families = list(reader.text_string_to_metric_families(page))
    names = [family.name for family in families]
    assert len(set(names)) == len(names) == 5 + counts, page
    for family in families[counts:]:
        assert len(family.samples[0].labels) == len(OddNames().labels), page
    if escaping == "underscores":
        assert "\nx_y{" in page and "_x{" in page and 'a_b="1"' in page and 'U__a_2e_b="0"' in page, page


@pytest.mark.parametrize("label", ["", "__name__"])
def test_a_label_that_prometheus_refuses_is_an_error_that_names_the_family(registry, label):
    registry.register(OddNames([label]))
    with pytest.raises(ValueError, match="give it another name") as error:
        talea_metrics.generate_latest(registry)
    assert error.value.args[-1].name == "x.y"


def test_the_official_registry_shows_our_metrics_and_ours_shows_theirs(registry):
    theirs = prometheus_client.CollectorRegistry()
    talea_metrics.Counter("ours", "Ours.", ["a"], registry=theirs).labels("x").inc(2)
    assert theirs.get_sample_value("ours_total", {"a": "x"}) == 2
    registry.register(prometheus_client.Gauge("theirs", "Theirs.", registry=None))
    assert b"theirs 0.0" in talea_metrics.generate_latest(registry)


def test_a_restricted_registry_has_the_named_samples_alone(registry):
    talea_metrics.Counter("orders", "Orders.", registry=registry).inc()
    talea_metrics.Summary("sizes", "Sizes.", registry=registry).observe(3)
    registry.register(Custom())
    restricted = registry.restricted_registry(["sizes_sum", "orders_total"])
    samples = {s.name: s.value for family in restricted.collect() for s in family.samples}
    assert samples == {"sizes_sum": 3, "orders_total": 1}
    assert b"sizes_sum 3" in talea_metrics.generate_latest(restricted)


def test_a_page_of_any_length_is_collected():
    registry = talea_metrics.CollectorRegistry()
    orders = talea_metrics.Counter("orders", "Orders.", ["of"], registry=registry)
    for n in range(3000):
        orders.labels(f"{n:0500}").inc()
    samples = [sample for family in registry.collect() for sample in family.samples]
    assert sum(sample.value for sample in samples if sample.name == "orders_total") == 3000
    page = talea_metrics.generate_latest(registry.restricted_registry(["orders_total"])).decode()
    assert len(page) > 1 << 20 and page.count("orders_total{") == 3000


def test_info_and_enum(registry):
    build = talea_metrics.Info("build", "Build.", registry=registry)
    assert registry.get_sample_value("build_info") == 1
    build.info({"version": "1", "revision": "a"})
    build.info({"version": "2"})
    assert registry.get_sample_value("build_info", {"version": "2"}) == 1
    assert len(list(build.collect()[0].samples)) == 1
    workers = talea_metrics.Info("worker", "Workers.", ["queue"], registry=registry)
    workers.labels("a").info({"host": "x"})
    workers.labels(queue="b").info({"host": "y"})
    assert registry.get_sample_value("worker_info", {"queue": "a", "host": "x"}) == 1
    workers.remove("a")
    assert registry.get_sample_value("worker_info", {"queue": "a", "host": "x"}) is None
    with pytest.raises(ValueError, match="queue"):
        workers.labels("b").info({"queue": "c"})
    with pytest.raises(ValueError, match="worker has no name"):
        workers.labels("b").info({"host": "z", "": "x"})
    assert registry.get_sample_value("worker_info", {"queue": "b", "host": "y"}) == 1
    circuit = talea_metrics.Enum("circuit", "Circuit.", ["to"], states=["closed", "open"], registry=registry)
    assert registry.get_sample_value("circuit", {"to": "x", "circuit": "closed"}) is None
    circuit.labels("x")
    assert registry.get_sample_value("circuit", {"to": "x", "circuit": "closed"}) == 1
    circuit.labels("x").state("open")
    assert registry.get_sample_value("circuit", {"to": "x", "circuit": "closed"}) == 0
    assert registry.get_sample_value("circuit", {"to": "x", "circuit": "open"}) == 1
    for states, reason in [([], "1 to 64 states; found 0$"), (["a", "a"], '"a" is given twice; name each state once')]:
        with pytest.raises(ValueError, match=reason):
            talea_metrics.Enum("valve", "V.", states=states, registry=registry)
    with pytest.raises(ValueError, match="half.*closed.*open"):
        circuit.labels("x").state("half")


def test_exemplars_are_on_the_page_of_openmetrics(registry):
    orders = talea_metrics.Counter("orders", "Orders.", registry=registry)
    times = talea_metrics.Histogram("times", "Times.", registry=registry)
    orders.inc(2, exemplar={"trace_id": "abc"})
    times.observe(0.3, exemplar={"trace_id": "def"})
    with pytest.raises(ValueError, match="128"):
        orders.inc(exemplar={"trace_id": "x" * 130})
    assert registry.get_sample_value("orders_total") == 3
    page = generate_openmetrics(registry).decode()
    found = {
        sample.exemplar.labels["trace_id"]: sample.exemplar.value
        for family in openmetrics(page)
        for sample in family.samples
        if sample.exemplar
    }
    assert found == {"abc": 2, "def": 0.3}


def test_a_function_gives_a_gauge_its_value(registry):
    level = talea_metrics.Gauge("level", "Level.", ["of"], registry=registry)
    items = [1]
    level.labels("items").set_function(lambda: len(items))
    assert registry.get_sample_value("level", {"of": "items"}) == 1
    items.append(2)
    assert b'level{of="items"} 2' in talea_metrics.generate_latest(registry)
    level.labels("items").set_function(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        talea_metrics.generate_latest(registry)
    level.remove("items")
    assert registry.get_sample_value("level", {"of": "items"}) is None
    level.labels("other").set_function(lambda: 1)
    level.labels("third").set_function(lambda: 3)
    level.remove_by_labels({"of": "other"})
    assert registry.get_sample_value("level", {"of": "other"}) is None
    assert registry.get_sample_value("level", {"of": "third"}) == 3
    level.clear()
    assert registry.get_sample_value("level", {"of": "third"}) is None


def test_an_error_of_a_custom_family_names_it(registry):
    family = GaugeMetricFamily("level", "Level.", labels=["of"])
    family.add_metric(["a"], "many")

    class Wrong:
        def collect(self):
            return [family]

    registry.register(Wrong())
    for page in [talea_metrics.generate_latest, generate_openmetrics]:
        with pytest.raises(ValueError, match="many") as error:
            page(registry)
        assert error.value.args[-1] is family


TEXT = """# HELP orders_total Orders "accepted".
# TYPE orders_total counter
orders_total{method="a \\"b\\" \\\\"} 1e+06 1700000000123
# TYPE wait histogram
wait_bucket{le="+Inf"} 2
wait_sum 3.5
wait_count 2
"""
OPENMETRICS = """# HELP orders Orders \\"accepted\\".
# TYPE orders counter
orders_total{method="a"} 3.0 17.5 # {trace_id="b"} 1.0 2.0
# TYPE wait_seconds gauge
# UNIT wait_seconds seconds
wait_seconds 2
# EOF
"""


@pytest.mark.parametrize(
    "ours, theirs, page", [(parser, their_parser, TEXT), (openmetrics_parser, their_openmetrics, OPENMETRICS)]
)
def test_pages_are_read_as_by_the_official_parsers(ours, theirs, page):
    def found(families):
        def plain(sample):
            time = sample.timestamp and float(sample.timestamp)
            exemplar = sample.exemplar and (*sample.exemplar[:2], float(sample.exemplar.timestamp))
            return sample.name, sample.labels, sample.value, time, exemplar

        return [
            (family.name, family.documentation, family.type, family.unit, *map(plain, family.samples))
            for family in families
        ]

    expected = found(theirs.text_string_to_metric_families(page))
    assert found(ours.text_string_to_metric_families(page)) == expected
    with pytest.raises(ValueError, match="line 2"):
        list(ours.text_fd_to_metric_families(io.StringIO("up 1\nup{ 1\n# EOF\n")))


# Pages, and whether Prometheus or the official parser refuses them.
TEXTS = [
    ('x{a="1",a="2"} 3', True),
    ('x{__name__="y"} 3', True),
    ('x{__a="y"} 3', True),
    ('x{a="1"b="2"} 3', True),
    ('x{a="1\n"} 3', True),
    ("x+1", True),
    ('{""} 1', True),
    ("\ufeffx 1", True),
    ("x 1e999", True),
    ('x{a="\\t\\z"} 3', False),
    ("# HELP x y\\\nx 1", False),
    ("# HELP x y\r\nx 1", False),
    ("# HELP x  y \nx 1", False),
    ("#HELP x y\nx 1", False),
    ("x 1\nx 2", False),
]
OPENMETRICS_TEXTS = [
    ('x{a="1",a="2"} 3', True),
    ('x{__name__="y"} 3', True),
    ("# UNIT x seconds\nx 3", True),
    ('x{a="1",} 3', True),
    ("# TYPE x gauge\nx 1 # {} 1", True),
    ("# TYPE x counter\nx_total -1", True),
    ("# TYPE x gauge\n# TYPE x gauge\nx 1", True),
    ("x 1\n# HELP x y", True),
    ('# TYPE x histogram\nx_bucket{le="1.0"} 1', True),
    ('# TYPE x summary\nx{quantile="2"} 1', True),
    ("x 1 2\nx 1 1", True),
    ("# TYPE x counter\n# TYPE x_total gauge", True),
    ("x 1\n\ny 1", True),
    ("# x\nx 1", True),
    ('x{a="\\t\\z"} 3', False),
    ("# HELP x y\\\nx 1", False),
    ('# HELP x "y"\nx 1', False),
    ("_x 1", False),
    ('x{_a="1"} 1', False),
]


@pytest.mark.parametrize(
    "ours, theirs, page, is_refused",
    [(parser, their_parser, f"{text}\n", is_refused) for text, is_refused in TEXTS]
    + [
        (openmetrics_parser, their_openmetrics, f"{text}\n# EOF\n", is_refused)
        for text, is_refused in OPENMETRICS_TEXTS
    ],
)
def test_a_page_is_refused_if_the_official_parser_or_prometheus_refuses_it(ours, theirs, page, is_refused):
    def read(parser):
        families = list(parser.text_string_to_metric_families(page))
        samples = [sample[:3] for family in families for sample in family.samples]
        return families[0].documentation, samples

    if is_refused:
        with pytest.raises(ValueError, match="line 1|line 2|line 3"):
            read(ours)
    elif page.startswith("#HELP"):
        # To the official parser alone that is no comment.
        assert read(ours) == ("", [("x", {}, 1)])
    else:
        assert read(ours)[1] == read(theirs)[1]


def test_a_custom_collector_shows_no_native_histogram_as_a_number(registry):
    from talea_metrics.samples import NativeHistogram

    family = talea_metrics.Metric("nh", "Native.", "histogram")
    native = NativeHistogram(1, 1, 3, 0.0, 0)
    family.add_sample("nh", {}, 0, native_histogram=native)

    class Native:
        def collect(self):
            return [family]

    registry.register(Native())
    for page in [talea_metrics.generate_latest, generate_openmetrics]:
        lines = page(registry).decode().splitlines()
        assert "# TYPE nh histogram" in lines
        assert not [line for line in lines if line.startswith("nh")]


@pytest.mark.parametrize("kind, name", [("gauge", "x"), ("summary", "x_count"), ("histogram", "x_sum")])
def test_an_exemplar_of_what_has_none_is_an_error(registry, kind, name):
    family = talea_metrics.Metric("x", "X.", kind)
    family.add_sample(name, {}, 1, exemplar=talea_metrics.samples.Exemplar({"a": "b"}, 1.0))

    class Wrong:
        def collect(self):
            return [family]

    registry.register(Wrong())
    with pytest.raises(ValueError, match="not a histogram bucket or counter"):
        generate_openmetrics(registry)


@pytest.mark.parametrize(
    "time, text, in_openmetrics",
    [
        (talea_metrics.samples.Timestamp(1, 1_000_000), "1001", "1.001000000"),
        (talea_metrics.samples.Timestamp(1_700_000_000, 123_456_789), "1700000000123", "1700000000.123456789"),
        (1.001, "1001", "1.001"),
        (1_700_000_000.123, "1700000000123", "1700000000.123"),
        (0.0035, "4", "0.0035"),
        (12, "12000", "12"),
    ],
)
def test_a_timestamp_of_a_custom_collector_keeps_its_digits(registry, time, text, in_openmetrics):
    family = talea_metrics.Metric("x", "X.", "gauge")
    family.add_sample("x", {}, 1, timestamp=time)

    class Timed:
        def collect(self):
            return [family]

    registry.register(Timed())
    assert f"x 1.0 {text}\n" in talea_metrics.generate_latest(registry).decode()
    assert f"x 1.0 {in_openmetrics}\n" in generate_openmetrics(registry).decode()


def test_a_mock_is_a_collector(registry):
    collector = unittest.mock.MagicMock()
    collector.collect.return_value = [GaugeMetricFamily("mocked", "M.", 1)]
    registry.register(collector)
    assert b"mocked 1.0" in talea_metrics.generate_latest(registry)


@pytest.mark.parametrize(
    "accept, content_type",
    [
        ("application/openmetrics-text", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (
            "application/openmetrics-text; escaping=allow-utf-8, text/plain",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
        (
            "application/openmetrics-text; version=1.0.0; escaping=allow-utf-8",
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8",
        ),
        ("text/plain; version=0.0.4", "text/plain; version=0.0.4; charset=utf-8"),
    ],
)
def test_openmetrics_without_a_version_is_1_0_0(registry, accept, content_type):
    assert talea_metrics.exposition.choose_encoder(accept)[1] == content_type
    assert prometheus_client.exposition.choose_encoder(accept)[1] == content_type
    talea_metrics.Gauge("x", "X.", registry=registry).set(1)
    page, found = talea_metrics.exposition.page(registry, accept)
    assert found == content_type
    assert page.endswith(b"# EOF\n") == content_type.startswith("application/openmetrics-text")


def test_created_samples_can_be_left_out(registry):
    talea_metrics.Counter("orders", "Orders.", registry=registry)
    pages = [generate_openmetrics, talea_metrics.generate_latest]
    assert all(b"orders_created" in page(registry) for page in pages)
    talea_metrics.disable_created_metrics()
    try:
        assert not any(b"orders_created" in page(registry) for page in pages)
    finally:
        talea_metrics.enable_created_metrics()


def test_the_collector_for_several_processes_shows_the_default_region():
    program = """
import talea_metrics
from talea_metrics.multiprocess import MultiProcessCollector
talea_metrics.Counter("orders", "Orders.").inc()
registry = talea_metrics.CollectorRegistry()
MultiProcessCollector(registry)
page = talea_metrics.generate_latest(registry)
assert b"orders_total 1" in page and b"process_" not in page, page
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@contextlib.contextmanager
def serving(registry, scheme="http", **options):
    """A server of a registry's page; its URL."""
    server, thread = talea_metrics.start_http_server(0, "127.0.0.1", registry, **options)
    try:
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(LONGEST)
    assert not thread.is_alive()


def fetch(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=LONGEST) as answer:
        return answer.headers, answer.read()


def test_a_server_answers_scrapes(registry):
    talea_metrics.Counter("orders", "Orders.", registry=registry).inc()
    talea_metrics.Gauge("level", "Level.", registry=registry)
    with serving(registry) as url:
        headers, page = fetch(url)
        assert b"orders_total 1" in page and headers["Content-Type"].startswith("text/plain")
        headers, page = fetch(url, **{"Accept-Encoding": "gzip"})
        assert b"orders_total 1" in gzip.decompress(page)
        # As the server of Rust: what the header weighs least is not sent.
        for accepted, coding in [("gzip;q=0.5, identity", None), ("x-gzip", "gzip"), ("*", "gzip"), ("gzip;q=0", None)]:
            assert fetch(url, **{"Accept-Encoding": accepted})[0].get("Content-Encoding") == coding
        headers, page = fetch(url, Accept="application/openmetrics-text; version=1.0.0")
        assert page.endswith(b"# EOF\n")
        assert b"orders" not in fetch(f"{url}?name[]=level")[1]
        with pytest.raises(urllib.error.HTTPError, match="405"):
            urllib.request.urlopen(url, data=b"x", timeout=LONGEST)


def test_a_server_says_that_a_collector_failed(registry, capsys):
    class Unreachable:
        def collect(self):
            raise ConnectionRefusedError("the queue is not there")

    registry.register(Unreachable())
    with serving(registry) as url, pytest.raises(urllib.error.HTTPError, match="500"):
        fetch(url)
    assert "the queue is not there" in capsys.readouterr().err


def test_a_server_speaks_tls(registry, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    options = {"certfile": str(certificate), "keyfile": str(key), "client_cafile": str(certificate)}
    context = ssl.create_default_context(cafile=str(certificate))
    with serving(registry, "https", client_auth_required=True, **options) as url:
        with pytest.raises((urllib.error.URLError, ssl.SSLError, ConnectionError)):
            urllib.request.urlopen(url, timeout=LONGEST, context=context).read()
        context.load_cert_chain(certificate, key)
        assert urllib.request.urlopen(url, timeout=LONGEST, context=context).status == 200
    with pytest.raises(ValueError, match="belong together"):
        talea_metrics.start_http_server(0, certfile="x")


def test_pushes_arrive(registry):
    talea_metrics.Counter("orders", "Orders.", registry=registry).inc()
    pushed = []

    class Gateway(http.server.BaseHTTPRequestHandler):
        def take(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            pushed.append((self.command, self.path, dict(self.headers), body))
            self.send_response(202)
            self.end_headers()

        do_PUT = do_POST = do_DELETE = take

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Gateway)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    gateway = f"127.0.0.1:{server.server_address[1]}"
    talea_metrics.push_to_gateway(gateway, "a job", registry, {"path": "a/b", "empty": ""})
    talea_metrics.pushadd_to_gateway(f"http://{gateway}/", "job", registry, compression="gzip")
    talea_metrics.delete_from_gateway(gateway, "job")
    server.shutdown()
    server.server_close()
    assert [method for method, *_ in pushed] == ["PUT", "POST", "DELETE"]
    assert pushed[0][1] == "/metrics/job@base64/YSBqb2I=/empty@base64/=/path@base64/YS9i"
    assert b"orders_total 1" in pushed[0][3]
    assert b"orders_total 1" in gzip.decompress(pushed[1][3])
    with pytest.raises(OSError):
        talea_metrics.push_to_gateway(gateway, "job", registry, timeout=5)


def test_a_file_for_the_node_exporter_is_replaced_at_once(registry, tmp_path):
    talea_metrics.Counter("orders", "Orders.", registry=registry).inc()
    path = tmp_path / "orders.prom"
    path.write_text("old")
    talea_metrics.write_to_textfile(str(path), registry)
    assert "orders_total 1" in path.read_text()
    assert [file.name for file in tmp_path.iterdir()] == ["orders.prom"]


PROGRAM = """
import talea_metrics
talea_metrics.install_as_prometheus_client()
talea_metrics.install_as_prometheus_client()
import prometheus_client.exposition
from prometheus_client import Counter, REGISTRY, make_asgi_app
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.multiprocess import MultiProcessCollector
assert prometheus_client.Counter is talea_metrics.Counter is Counter and REGISTRY is talea_metrics.REGISTRY
assert isinstance(Counter("c", "C.", registry=None), MetricWrapperBase)
assert isinstance(prometheus_client.Info("i", "I.", registry=None), MetricWrapperBase)
assert not isinstance(REGISTRY, MetricWrapperBase)
page = prometheus_client.generate_latest()
assert b"python_info" in page and b"process_cpu_seconds_total" in page and b"python_gc_" in page
"""


def test_talea_takes_the_name_of_prometheus_client():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
    late = "import prometheus_client, talea_metrics; talea_metrics.install_as_prometheus_client()"
    failed = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True)
    assert failed.returncode == 1 and "imported already" in failed.stderr


@pytest.mark.parametrize("name", ["asgi.Middleware", "multiprocess.MultiProcessCollector", "typed.labelled", "wsgi.meter_flask"])
def test_modules_that_the_documents_name_need_no_import_of_their_own(name):
    subprocess.run([sys.executable, "-c", f"import talea_metrics; talea_metrics.{name}"], check=True)


@pytest.mark.parametrize("variable", ["TALEA_REGION", "PROMETHEUS_MULTIPROC_DIR"])
def test_the_environment_names_the_region(variable):
    program = "import talea_metrics as t; t.Counter('orders', 'O.').inc(); print(t.generate_latest().decode())"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        value = folder if variable == "PROMETHEUS_MULTIPROC_DIR" else f"{folder}/shop.talea"
        for count in (1, 2):
            page = subprocess.check_output([sys.executable, "-c", program], env={variable: value})
            assert f"orders_total {count}" in page.decode()
            assert "process_" not in page.decode()


def test_a_collector_of_processes_shows_the_folder_that_it_is_given():
    program = "import talea_metrics; talea_metrics.Counter('orders', 'O.').inc()"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        environment = {"PROMETHEUS_MULTIPROC_DIR": folder}
        for count in (1, 2):
            subprocess.run([sys.executable, "-c", program], env=environment, check=True)
            registry = talea_metrics.CollectorRegistry()
            MultiProcessCollector(registry, path=folder)
            assert registry.get_sample_value("orders_total") == count
        with pytest.raises(OSError, match="nowhere"):
            MultiProcessCollector(registry, path=f"{folder}/nowhere")


def test_an_application_starts_without_its_region(tmp_path):
    program = "import talea_metrics as t; t.Counter('orders', 'O.').inc(); print(t.generate_latest().decode())"
    path = tmp_path / "other.talea"
    path.write_bytes(b"something else" * 1000)
    command = [sys.executable, "-W", "always", "-c", program]
    done = subprocess.run(command, env={"TALEA_REGION": str(path)}, capture_output=True, text=True)
    assert "orders_total 1" in done.stdout
    assert "RuntimeWarning" in done.stderr and str(path) in done.stderr
    assert path.read_bytes() == b"something else" * 1000


def test_warnings_may_be_counted_in_the_registry_that_warns():
    program = """
import logging, talea_metrics
class Counted(logging.Handler):
    def emit(self, record):
        lines = talea_metrics.Counter("lines", "Lines.")
        lines.inc()
logging.captureWarnings(True)
logging.getLogger().addHandler(Counted())
talea_metrics.Counter("orders", "O.").inc()
print(talea_metrics.generate_latest().decode())
"""
    command = [sys.executable, "-W", "always", "-c", program]
    environment = {"TALEA_REGION": "/nowhere/shop.talea"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST)
    assert "orders_total 1" in done.stdout and "lines_total 1" in done.stdout, done.stderr


def test_what_interrupts_a_registration_may_use_the_registry(registry):
    class Name(str):
        """A text that makes a page when it is hashed: as a handler of a signal may do at any time."""

        __slots__ = ()

        def __hash__(self):
            pages.append(talea_metrics.generate_latest(registry))
            return str.__hash__(self)

    class Described(Custom):
        def describe(self):
            return [GaugeMetricFamily(Name("queue_length"), "Jobs.")]

    pages = []
    thread = threading.Thread(target=registry.register, args=[Described()], daemon=True)
    thread.start()
    # The deadline only ends a test that has failed.
    thread.join(60)
    assert not thread.is_alive() and pages


def test_a_full_region_is_a_warning(region):
    registry = talea_metrics.CollectorRegistry(path=region, size=1 << 20)
    with pytest.warns(RuntimeWarning, match="this process alone") as warned:
        for n in range(5_000):
            last = talea_metrics.Counter(f"orders_{n}", "Orders.", registry=registry)
            last.inc()
            if last._region is not registry._region:
                break
    assert [warning.filename for warning in warned] == [__file__]
    assert registry.get_sample_value(f"orders_{n}_total") == 1
    assert registry.get_sample_value("orders_0_total") == 1


def test_metrics_that_a_full_region_has_no_room_for_are_shown_by_their_process(region):
    registry = talea_metrics.CollectorRegistry(path=region, size=1 << 20)
    with pytest.warns(RuntimeWarning, match="this process alone"):
        for n in range(5_000):
            if talea_metrics.Histogram(f"took_{n}", "T.", registry=registry)._region is not registry._region:
                break
    with pytest.warns(RuntimeWarning, match="this process alone"):
        talea_metrics.Info("build", "Build.", registry=registry).info({"version": "1"})
    with pytest.warns(RuntimeWarning, match="this process alone"):
        meters = [talea_metrics.http_meter(registry=registry)]
    meters.append(talea_metrics.http_meter(registry=registry))
    for meter in meters:
        request = meter.arrived("GET", False, False, 0)
        request.enter(meter.route("/a", ["GET"]))
        request.head(200)
        request.body(0, True)
    assert registry.get_sample_value("build_info", {"version": "1"}) == 1
    labels = {"method": "GET", "route": "/a", "status": "2xx"}
    assert registry.get_sample_value("http_requests_total", labels) == 2
    names = [family.name for family in registry.collect()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", [talea_metrics.Counter, talea_metrics.Info])
def test_a_registry_of_the_official_client_shows_each_kind(kind):
    theirs = prometheus_client.CollectorRegistry()
    metric = kind("build", "Build.", registry=theirs)
    (family,) = theirs.collect()
    assert [sample.name for sample in family.samples if "_created" not in sample.name] == [
        "build_total" if kind is talea_metrics.Counter else "build_info"
    ]
    assert list(metric.collect())[0].name == "build"


@pytest.mark.parametrize("kind", [talea_metrics.Summary, talea_metrics.Histogram])
@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_sum_that_openmetrics_has_apart_is_collected(registry, kind, value):
    theirs = prometheus_client.CollectorRegistry()
    metrics = [kind("change", "Change.", ["of"], registry=one) for one in (registry, theirs)]
    for metric in metrics:
        metric.labels("a").observe(value)
        metric.labels("b").observe(2)
    (family,) = metrics[0].labels("b").collect()
    assert {sample.name: sample.value for sample in family.samples}["change_sum"] == 2
    restricted = registry.restricted_registry(["change_sum"])
    assert len([sample for family in restricted.collect() for sample in family.samples]) == 2
    page = prometheus_client.generate_latest(theirs)
    assert b'change_count{of="a"} 1.0' in page and b'change_sum{of="b"} 2.0' in page


def test_the_distribution_has_no_module_of_another_projects_name():
    tops = {file.parts[0] for file in importlib.metadata.files("talea-metrics")}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"talea_metrics"}


class Nameless:
    def collect(self):
        yield GaugeMetricFamily("nameless", "Of a collector that does not say its names.", 1)


def test_a_collector_that_is_registered_twice_is_shown_once_and_removed_at_once():
    registry = talea_metrics.CollectorRegistry()
    collector = Nameless()
    for _ in range(2):
        registry.register(collector)
    assert talea_metrics.generate_latest(registry).count(b"nameless 1.0") == 1
    registry.unregister(collector)
    assert talea_metrics.generate_latest(registry) == b""
    registry.register(collector)
    assert talea_metrics.generate_latest(registry).count(b"nameless 1.0") == 1


def test_a_region_that_two_collectors_show_is_on_the_page_once(region):
    program = """
import talea_metrics
from talea_metrics.multiprocess import MultiProcessCollector
talea_metrics.Counter("orders", "O.").inc()
registry = talea_metrics.CollectorRegistry()
for _ in range(2):
    MultiProcessCollector(registry)
for page in (talea_metrics.generate_latest(registry), talea_metrics.exposition.page(registry, "text/plain")[0]):
    assert page.count(b"orders_total 1.0") == 1, page
assert len([family for family in registry.collect() if family.name == "orders"]) == 1
"""
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "TALEA_REGION": region}, check=True)


@pytest.mark.parametrize("shared", [True, False])
def test_the_collectors_of_a_process_can_be_unregistered(region, shared):
    program = """
import sys, talea_metrics as t
page = t.generate_latest()
assert (b"python_info" in page) == (sys.argv[1] == "False"), page
for collector in (t.GC_COLLECTOR, t.PLATFORM_COLLECTOR, t.PROCESS_COLLECTOR):
    t.REGISTRY.unregister(collector)
page = t.generate_latest()
assert b"python_" not in page and b"process_" not in page, page
own = t.CollectorRegistry()
own.register(t.PLATFORM_COLLECTOR)
assert b"python_info" in t.generate_latest(own)
"""
    environment = {**os.environ, **({"TALEA_REGION": region} if shared else {})}
    subprocess.run([sys.executable, "-c", program, str(shared)], env=environment, check=True)


def test_what_a_process_uses_is_not_shown_by_a_child_that_shares_its_memory():
    program = """
import os, talea_metrics as t
t.Counter("orders", "O.").inc()
if os.fork() == 0:
    page = t.generate_latest(t.REGISTRY.restricted_registry(["process_cpu_seconds_total", "orders_total"]))
    assert page == b"# HELP orders_total O.\\n# TYPE orders_total counter\\norders_total 1.0\\n", page
    page = t.generate_latest()
    assert b"process_" not in page and b"python_gc" not in page and b"python_info" in page, page
    os._exit(0)
assert os.waitpid(-1, 0)[1] == 0
assert b"process_" in t.generate_latest()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


class Renamed(talea_metrics.CollectorRegistry):
    """A registry that shows its families under other names, and one more."""

    def collect(self):
        for family in super().collect():
            family.name = f"shop_{family.name}"
            family.samples = [sample._replace(name=f"shop_{sample.name}") for sample in family.samples]
            yield family
        yield GaugeMetricFamily("more", "More.", 2)


def test_a_registry_of_a_subclass_shows_what_it_collects():
    registry = Renamed()
    talea_metrics.Counter("orders", "O.", registry=registry).inc()
    changed = talea_metrics.CollectorRegistry()
    changed.collect = registry.collect
    for shown in (registry, changed):
        for page in (talea_metrics.generate_latest(shown), generate_openmetrics(shown)):
            assert b"\nshop_orders_total 1.0\n" in page and b"more 2.0" in page, page
            assert b"\norders_total" not in page


def test_a_server_that_is_shut_down_gives_its_port_back():
    server, thread = talea_metrics.start_http_server(0, "127.0.0.1", talea_metrics.CollectorRegistry())
    port = server.server_address[1]
    server.shutdown()
    thread.join(LONGEST)
    with socket.socket() as other:
        with pytest.raises(ConnectionRefusedError):
            other.connect(("127.0.0.1", port))
    again, thread = talea_metrics.start_http_server(port, "127.0.0.1", talea_metrics.CollectorRegistry())
    again.shutdown()
    thread.join(LONGEST)


def test_the_modules_of_the_official_client_are_there():
    program = """
import importlib, pkgutil, sys
import prometheus_client
modules = [m.name for m in pkgutil.walk_packages(prometheus_client.__path__, "prometheus_client.")]
names = {m: [n for n in vars(importlib.import_module(m)) if not n.startswith("_")] for m in modules if ".bridge" not in m and ".twisted" not in m}
for module in [m for m in sys.modules if m.split(".")[0] == "prometheus_client"]:
    del sys.modules[module]
import talea_metrics
talea_metrics.install_as_prometheus_client()
missing = []
for module, own in names.items():
    try:
        importlib.import_module(module)
    except ImportError:
        missing.append(module)
print(*sorted(missing))
import prometheus_client.values
from prometheus_client.values import MultiProcessValue, get_value_class
from prometheus_client.process_collector import PROCESS_COLLECTOR
from prometheus_client.gc_collector import GC_COLLECTOR
from prometheus_client.platform_collector import PLATFORM_COLLECTOR
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.context_managers import ExceptionCounter, InprogressTracker, Timer
from prometheus_client import Counter, Gauge, Histogram, REGISTRY
assert {PROCESS_COLLECTOR, GC_COLLECTOR, PLATFORM_COLLECTOR} <= set(REGISTRY._collector_to_names)
took = Histogram("took", "T.", registry=None)
assert isinstance(took.time(), Timer)
with Timer(took, "observe"), ExceptionCounter(Counter("c", "C.", registry=None), Exception):
    with InprogressTracker(Gauge("g", "G.", registry=None)):
        pass
assert took.collect()[0].samples[-2].value == 1 or any(s.name == "took_count" and s.value == 1 for s in took.collect()[0].samples)
prometheus_client.values.ValueClass = MultiProcessValue(lambda: 7)
value = get_value_class()("gauge", "g", "g", (), (), "")
value.inc(3)
assert value.get() == 3
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["prometheus_client.django.exposition", "prometheus_client.mmap_dict"]


def test_aiohttp_answers_with_a_page(registry):
    aiohttp_web = pytest.importorskip("aiohttp.web")
    import asyncio

    import aiohttp

    from talea_metrics.aiohttp import make_aiohttp_handler

    talea_metrics.Counter("orders", "O.", registry=registry).inc()
    talea_metrics.Counter("other", "O.", registry=registry).inc()

    async def run():
        app = aiohttp_web.Application()
        app.router.add_get("/metrics", make_aiohttp_handler(registry))
        runner = aiohttp_web.AppRunner(app)
        await runner.setup()
        site = aiohttp_web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        async with aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{port}/metrics?name[]=orders_total"
            async with session.get(url, headers={"Accept": "application/openmetrics-text; version=1.0.0"}) as found:
                page = await found.read(), found.headers["Content-Type"]
        await runner.cleanup()
        return page

    page, content_type = asyncio.run(run())
    assert b"orders_total 1.0" in page and b"other" not in page and page.endswith(b"# EOF\n")
    assert content_type.startswith("application/openmetrics-text")
