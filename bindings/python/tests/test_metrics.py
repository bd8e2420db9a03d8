"""Each kind of metric, beside the official client where that has it."""

import asyncio
import enum
import math
import time
from typing import NamedTuple

import prometheus_client
import pytest
from hypothesis import given, settings, strategies as st
from prometheus_client.parser import text_string_to_metric_families

import talea_metrics
from prometheus_client.openmetrics.exposition import generate_latest as their_openmetrics
from talea_metrics.core import DuplicateTimeseries
from talea_metrics.openmetrics.exposition import generate_latest as generate_openmetrics
from talea_metrics.typed import labelled


def samples(page):
    """The samples of a page, without those of creation times. Thresholds are numbers: 1 is 1.0."""

    def label(name, value):
        return name, float(value) if name == "le" else value

    return {
        (sample.name, tuple(sorted(label(*pair) for pair in sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def lines(page):
    """The lines about samples, in order and without creation times, and the others."""
    found = page.decode().splitlines()
    found = [line.rpartition(" ")[0] if "_created{" in line else line for line in found]
    about = {line for line in found if line.startswith("#")}
    return sorted(line for line in found if line not in about), about


@pytest.mark.parametrize("amount", [-1, math.nan, math.inf])
def test_a_counter_takes_no_such_amount(registry, amount):
    orders = talea_metrics.Counter("orders", "Orders accepted.", registry=registry)
    with pytest.raises(ValueError, match="finite amounts that are not negative"):
        orders.inc(amount)
    assert registry.get_sample_value("orders_total") == 0


def test_a_gauge_takes_the_time(registry):
    last = talea_metrics.Gauge("last_run_seconds", "Last run.", registry=registry)
    before = time.time()
    last.set_to_current_time()
    assert before - 1 <= registry.get_sample_value("last_run_seconds") <= time.time() + 1


def test_thresholds_end_with_infinity_or_without(registry):
    for name, buckets in [("with", (1, 5, math.inf)), ("without", [1, 5])]:
        histogram = talea_metrics.Histogram(name, "H.", registry=registry, buckets=buckets)
        histogram.observe(3)
        for threshold, count in [("1.0", 0), ("5.0", 1), ("+Inf", 1)]:
            assert registry.get_sample_value(f"{name}_bucket", {"le": threshold}) == count
    for wrong in [(5, 1), (math.nan,)]:
        with pytest.raises(ValueError, match="wrong"):
            talea_metrics.Histogram("wrong", "H.", registry=registry, buckets=wrong)


def test_label_values_are_given_by_position_and_by_name(registry):
    orders = talea_metrics.Counter("orders", "Orders.", ["method", "status"], registry=registry)
    orders.labels("card", 200).inc()
    assert orders.labels(status="200", method="card") is orders.labels("card", "200")
    orders.labels(status=200, method="card").inc()
    labels = {"method": "card", "status": "200"}
    assert registry.get_sample_value("orders_total", labels) == 2


def test_wrong_labels_are_explained(registry):
    orders = talea_metrics.Counter("orders", "Orders.", ["method", "status"], registry=registry)
    plain = talea_metrics.Counter("plain", "Plain.", registry=registry)
    for wrong in [
        lambda: orders.labels("card"),
        lambda: orders.labels(method="card"),
        lambda: orders.labels(method="card", other="x"),
        lambda: orders.labels("card", status="200"),
    ]:
        with pytest.raises(ValueError, match="method.*status"):
            wrong()
    for update in [orders.inc, orders.count_exceptions, orders.reset]:
        with pytest.raises(ValueError, match="missing label values.*method.*status"):
            update()
    with pytest.raises(ValueError, match="without labelnames"):
        plain.labels("x")
    with pytest.raises(ValueError, match="already"):
        orders.labels("card", "200").labels("card", "200")


def test_a_removed_series_is_gone_and_begins_anew(registry):
    orders = talea_metrics.Counter("orders", "Orders.", ["method"], registry=registry)
    orders.labels("card").inc(3)
    orders.labels("cash").inc(4)
    orders.remove("card")
    assert registry.get_sample_value("orders_total", {"method": "card"}) is None
    orders.labels("card").inc()
    assert registry.get_sample_value("orders_total", {"method": "card"}) == 1
    orders.remove("coupon")
    with pytest.raises(ValueError, match="not 2"):
        orders.remove("card", "x")
    orders.clear()
    assert registry.get_sample_value("orders_total", {"method": "cash"}) is None


def test_series_beyond_the_limit_count_in_one(registry):
    orders = talea_metrics.Counter("orders", "Orders.", ["user"], registry=registry, limit=10)
    for n in range(100):
        orders.labels(n).inc()
    assert registry.get_sample_value("orders_total", {"user": "3"}) == 1
    page = samples(talea_metrics.generate_latest(registry))
    assert sum(value for (name, _), value in page.items() if name == "orders_total") == 100
    assert any(("otel_metric_overflow", "true") in labels for _, labels in page)
    # No memory is kept for the others: there may be any number of them.
    assert len(orders._metrics) == 10
    assert sum(value for (name, _), value in page.items() if name == "talea_series_dropped_total") == 90


def test_a_name_is_taken_once(registry):
    orders = talea_metrics.Counter("orders", "Orders.", registry=registry)
    for kind, name in [(talea_metrics.Counter, "orders"), (talea_metrics.Gauge, "orders_total")]:
        with pytest.raises(DuplicateTimeseries, match=name):
            kind(name, "Orders.", registry=registry)
    orders.inc(3)
    registry.unregister(orders)
    assert registry.get_sample_value("orders_total") is None
    with pytest.raises(ValueError, match=r"Counter\(orders\).*make the metric anew"):
        registry.register(orders)
    again = talea_metrics.Counter("orders", "Orders.", registry=registry)
    again.inc()
    orders.inc()
    assert registry.get_sample_value("orders_total") == 2


def test_names_have_their_parts(registry):
    talea_metrics.Counter("time_seconds_total", "T.", (), "shop", "db", "seconds", registry).inc()
    talea_metrics.Gauge("size", "S.", namespace="shop", unit="bytes", registry=registry).set(1)
    assert registry.get_sample_value("shop_db_time_seconds_total") == 1
    assert registry.get_sample_value("shop_size_bytes") == 1


def test_blocks_are_measured_and_counted(registry):
    times = talea_metrics.Histogram("work_seconds", "Work.", registry=registry)
    errors = talea_metrics.Counter("errors", "Errors.", registry=registry)
    running = talea_metrics.Gauge("running", "Running.", registry=registry)

    @times.time()
    @errors.count_exceptions(KeyError)
    @running.track_inprogress()
    def work(error=None):
        assert registry.get_sample_value("running") == 1
        if error:
            raise error
        return 7

    @times.time()
    @errors.count_exceptions()
    @running.track_inprogress()
    async def work_later():
        await asyncio.sleep(0)
        assert registry.get_sample_value("running") == 1
        raise OSError

    assert work() == 7
    with pytest.raises(KeyError):
        work(KeyError())
    with pytest.raises(OSError):
        work(OSError())
    with pytest.raises(OSError):
        asyncio.run(work_later())
    with times.time() as timer, timer:
        pass
    assert registry.get_sample_value("work_seconds_count") == 6
    assert registry.get_sample_value("errors_total") == 2
    assert registry.get_sample_value("running") == 0


def test_quantiles_are_those_of_a_window(registry):
    waits = talea_metrics.Histogram("wait_seconds", "W.", ["of"], quantiles=[0.5, 1], window=60, registry=registry)
    sizes = talea_metrics.Summary("sizes", "S.", quantiles=[0.5], window=5, registry=registry)
    for n in range(1, 1001):
        waits.labels("a").observe(n / 1000)
        sizes.observe(n)
    median = registry.get_sample_value("wait_recent_seconds", {"of": "a", "quantile": "0.5"})
    assert median == pytest.approx(0.5, rel=0.045)
    assert registry.get_sample_value("sizes", {"quantile": "0.5"}) == pytest.approx(500, rel=0.045)
    for window in [0, -1, 0.5, math.nan, 1e300]:
        with pytest.raises(ValueError, match="window"):
            talea_metrics.Summary("other", "O.", quantiles=[0.5], window=window, registry=registry)


class Country(enum.Enum):
    PERU = "pe"


class Order(NamedTuple):
    method: str
    country: Country


def test_label_names_can_be_those_of_a_class(registry):
    orders = labelled(talea_metrics.Counter, Order, "orders", "Orders.", registry=registry)
    orders.labels("card", Country.PERU).inc()
    orders.labels(country=Country.PERU, method="card").inc()
    of = {"method": "card", "country": "pe"}
    assert registry.get_sample_value("orders_total", of) == 2
    with pytest.raises(TypeError, match="too many positional"):
        orders.remove("card", Country.PERU, "third")
    orders.remove("card", country=Country.PERU)
    assert registry.get_sample_value("orders_total", of) is None
    with pytest.raises(TypeError, match="has a default"):
        labelled(talea_metrics.Counter, lambda method="card": None, "other", "O.", registry=registry)
    with pytest.raises(TypeError, match="variadic"):
        labelled(talea_metrics.Counter, lambda *methods: None, "other", "O.", registry=registry)


UPDATES = st.lists(
    st.tuples(
        st.sampled_from(["counter", "gauge", "set", "histogram", "summary"]),
        st.sampled_from(["a", "b", 'a "quoted" \\ one\n', "ü", ""]),
        # Sums of these are exact in any order.
        st.integers(-(1 << 20), 1 << 20).map(lambda n: n / 64),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(UPDATES)
def test_both_libraries_write_the_same_lines(updates):
    ours, theirs = talea_metrics.CollectorRegistry(size=4 << 20), prometheus_client.CollectorRegistry()
    # They sort labels, so that `le` is not always the last.
    labels = ["item"]
    for library, registry in [(talea_metrics, ours), (prometheus_client, theirs)]:
        counter = library.Counter("counter", "C.", labels, registry=registry)
        gauge = library.Gauge("gauge", "G.", labels, registry=registry)
        histogram = library.Histogram("histogram", "H.", labels, registry=registry)
        summary = library.Summary("summary", "S.", labels, registry=registry)
        for kind, name, number in updates:
            if kind == "counter":
                counter.labels(name).inc(abs(number))
            elif kind == "gauge":
                gauge.labels(item=name).inc(number)
            elif kind == "set":
                gauge.labels(name).set(number)
            elif kind == "histogram":
                histogram.labels(name).observe(abs(number))
            else:
                summary.labels(name).observe(abs(number))
    for our_page, their_page in [
        (talea_metrics.generate_latest(ours), prometheus_client.generate_latest(theirs)),
        (generate_openmetrics(ours), their_openmetrics(theirs)),
    ]:
        (found, about), (expected, about_all) = lines(our_page), lines(their_page)
        assert found == expected
        # Families without series are left out.
        assert about <= about_all


class Unprintable:
    def __str__(self):
        raise RuntimeError("no text")


def test_odd_label_values_are_texts_or_errors(registry):
    orders = talea_metrics.Counter("orders", "Orders.", ["of"], registry=registry)
    odd = [5, 1.5, None, True, b"x", (1, 2), [1], {"a": 1}, "", "\0", 'a"b\\c\n', "é", "x" * 5000, 10**400]
    for value in odd:
        orders.labels(value).inc()
        shown = {"of": str(value)}
        assert registry.get_sample_value("orders_total", shown) == 1, value
    for value, error in [("\ud800", UnicodeEncodeError), (Unprintable(), RuntimeError)]:
        with pytest.raises(error):
            orders.labels(value)
    # The samples that the parser of the official client reads, since no series spoils the page.
    page = talea_metrics.generate_latest(registry, "allow-utf-8").decode()
    (family,) = [one for one in text_string_to_metric_families(page) if one.name == "orders"]
    assert len([one for one in family.samples if one.name == "orders_total"]) == len(odd)


class Method(str, enum.Enum):
    CARD = "card"


@pytest.mark.parametrize("order", [[Method.CARD, "card"], ["card", Method.CARD]])
def test_a_label_value_is_its_text_whatever_equals_it(registry, order):
    orders = talea_metrics.Counter("orders", "Orders.", ["method"], registry=registry)
    assert Method.CARD == "card" and str(Method.CARD) == "Method.CARD"
    for _ in range(2):
        for method in order:
            orders.labels(method).inc()
            orders.labels(method=method).inc()
    for method in order:
        assert registry.get_sample_value("orders_total", {"method": str(method)}) == 4


def test_odd_numbers_are_values_or_errors(registry):
    level = talea_metrics.Gauge("level", "Level.", registry=registry)
    sizes = talea_metrics.Histogram("sizes", "Sizes.", registry=registry)
    orders = talea_metrics.Counter("orders", "Orders.", registry=registry)
    for record in [level.set, level.inc, sizes.observe, orders.inc]:
        for value, error in [(10**400, OverflowError), ("x", TypeError), (None, TypeError)]:
            with pytest.raises(error):
                record(value)
    for value in [math.inf, -math.inf, 1e308, 5e-324, -0.0, True, 2**63]:
        level.set(value)
        assert registry.get_sample_value("level") == value
    level.set(math.nan)
    assert math.isnan(registry.get_sample_value("level"))
    for value in [math.nan, math.inf, -math.inf, -1e308, 0, 1]:
        sizes.observe(value)
    assert orders._value.get() == 0
    talea_metrics.generate_latest(registry)


def test_a_function_that_raises_spoils_its_pages_alone(registry):
    level = talea_metrics.Gauge("level", "Level.", registry=registry)
    kept = talea_metrics.Counter("kept", "Kept.", registry=registry)
    level.set_function(lambda: 1 / 0)
    for _ in range(2):
        kept.inc()
        with pytest.raises(ZeroDivisionError):
            talea_metrics.generate_latest(registry)
    # A function may do anything, also change what is shown, or ask for a page.
    level.set_function(lambda: (level.set_function(lambda: 7), kept.inc(), 6)[2])
    assert registry.get_sample_value("level") == 6
    assert registry.get_sample_value("level") == 7
    assert registry.get_sample_value("kept_total") == 3
    level.set_function(lambda: "many")
    with pytest.raises(TypeError):
        talea_metrics.generate_latest(registry)


@pytest.mark.parametrize("name", ["build", "build_info"])
def test_an_info_has_the_name_of_the_official_client(region, name):
    theirs = prometheus_client.CollectorRegistry()
    prometheus_client.Info(name, "B.", registry=theirs).info({"version": "1"})
    # Each registry counts as a process.
    first, second = [talea_metrics.CollectorRegistry(path=region) for _ in range(2)]
    build = talea_metrics.Info(name, "B.", registry=first)
    build.info({"version": "1"})
    again = talea_metrics.Info(name, "B.", registry=second)
    assert [[tuple(sample)[:3] for sample in family.samples] for family in again.collect()] == [
        [tuple(sample)[:3] for sample in family.samples] for family in theirs.collect()
    ]
    first.unregister(build)
    assert list(second.collect()) == []
    parts = talea_metrics.Info(f"parts_of_{name}", "P.", ["of"], registry=first)
    parts.labels("a").info({"version": "1"})
    parts.clear()
    assert list(first.collect()) == []


def test_a_new_child_of_an_info_has_the_facts_of_others_and_reads_no_other_child(region, monkeypatch):
    first, second = [talea_metrics.CollectorRegistry(path=region) for _ in range(2)]
    workers = [talea_metrics.Info("worker", "W.", ["queue"], registry=registry) for registry in (first, second)]
    with monkeypatch.context() as collected:
        collected.setattr("talea_metrics.metrics.families_of", lambda *_: pytest.fail("a page was read"))
        workers[0].labels("a").info({"version": "1"})
        for queue in "ab":
            workers[1].labels(queue)
    facts = [sample.labels for family in first.collect() for sample in family.samples]
    assert sorted(facts, key=str) == [{"queue": "a", "version": "1"}, {"queue": "b"}]


@pytest.mark.parametrize("kind", ["Counter", "Gauge", "Histogram", "Summary", "Info"])
def test_a_metric_that_is_made_anew_has_no_series_of_the_one_before(registry, kind):
    def made():
        return getattr(talea_metrics, kind)("made", "Made.", ["of"], registry=registry)

    before = made()
    child = before.labels("a")
    registry.unregister(before)
    after = made()
    assert [sample for family in after.collect() for sample in family.samples] == []
    # The child is of the one before.
    if kind == "Counter":
        child.inc(2)
        after.labels("a").inc()
        assert registry.get_sample_value("made_total", {"of": "a"}) == 1


@pytest.mark.parametrize("mode", ["mostrecent", "livesum", "livemax", "livemin", "liveall"])
@pytest.mark.parametrize("way", ["remove", "remove_by_labels", "clear", "unregister", "unregister the only series"])
def test_a_gauge_that_was_removed_counts_from_0(registry, mode, way):
    def made():
        names = [] if "only" in way else ["of"]
        return talea_metrics.Gauge("level", "Level.", names, registry=registry, multiprocess_mode=mode)

    level = made()
    (level if "only" in way else level.labels("a")).set(3)
    if way == "remove":
        level.remove("a")
    elif way == "remove_by_labels":
        level.remove_by_labels({"of": "a"})
    elif way == "clear":
        level.clear()
    else:
        registry.unregister(level)
        level = made()
    (level if "only" in way else level.labels("a")).inc()
    (family,) = level.collect()
    assert [sample.value for sample in family.samples] == [1]


@pytest.mark.parametrize("library", [talea_metrics, prometheus_client])
def test_facts_are_removed_by_some_of_their_labels(library):
    info = library.Info("parts", "Parts.", ["of", "at"], registry=library.CollectorRegistry())
    for of, at in [("a", "1"), ("a", "2"), ("b", "1")]:
        info.labels(of, at).info({"version": of})
    info.remove_by_labels({})
    info.remove_by_labels({"of": "none"})
    info.remove_by_labels({"at": 1})
    (family,) = info.collect()
    assert [sample.labels["at"] for sample in family.samples] == ["2"]
    with pytest.raises(ValueError):
        info.remove_by_labels({"color": "x"})
    with pytest.raises(ValueError):
        library.Info("build", "Build.", registry=None).remove_by_labels({"of": "a"})
