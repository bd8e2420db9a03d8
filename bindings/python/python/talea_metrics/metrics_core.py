"""Families of samples, for custom collectors, by the names of ``prometheus_client.metrics_core``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Union

from talea_metrics.samples import Exemplar, NativeHistogram, Sample, Timestamp

METRIC_TYPES = (
    "counter",
    "gauge",
    "summary",
    "histogram",
    "gaugehistogram",
    "unknown",
    "info",
    "stateset",
)

_Time = Optional[Union[Timestamp, float]]
# A threshold and its count, and maybe an exemplar.
_Buckets = Sequence[Any]


class Metric:
    """A family: its name, help, type and unit, and its samples."""

    def __init__(self, name: str, documentation: str, typ: str, unit: str = "") -> None:
        if unit and not name.endswith("_" + unit):
            name += "_" + unit
        if not name:
            raise ValueError("a family's name is empty; name what is measured")
        if typ == "untyped":
            typ = "unknown"
        if typ not in METRIC_TYPES:
            raise ValueError(f"there is no type {typ!r}; the types are {', '.join(METRIC_TYPES)}")
        self.name = name
        self.documentation = documentation
        self.unit = unit
        self.type = typ
        self.samples: list[Sample] = []

    def add_sample(
        self,
        name: str,
        labels: Mapping[str, str],
        value: float,
        timestamp: _Time = None,
        exemplar: Optional[Exemplar] = None,
        native_histogram: Optional[NativeHistogram] = None,
    ) -> None:
        """Adds a sample with its whole name."""
        self.samples.append(Sample(name, labels, value, timestamp, exemplar, native_histogram))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metric) and self._parts() == other._parts()

    def _parts(self) -> tuple[object, ...]:
        return self.name, self.documentation, self.type, self.unit, self.samples

    def __repr__(self) -> str:
        return f"Metric({', '.join(map(str, self._parts()))})"

    def _restricted_metric(self, names: Iterable[str]) -> Optional["Metric"]:
        """The family with the samples of these names alone, if it has any."""
        samples = [sample for sample in self.samples if sample.name in names]
        if not samples:
            return None
        restricted = Metric(self.name, self.documentation, self.type)
        restricted.samples = samples
        return restricted


class _Family(Metric):
    """A family whose series have label values in the order of names."""

    _kind = ""

    def __init__(
        self, name: str, documentation: str, labels: Optional[Iterable[str]], unit: str, has_value: bool
    ) -> None:
        super().__init__(name, documentation, self._kind, unit)
        if labels is not None and has_value:
            raise ValueError("a family has either one value or labels, and both were given")
        self._labelnames = tuple(labels or ())

    def _add(
        self,
        ending: str,
        labels: Sequence[str],
        value: float,
        timestamp: _Time = None,
        exemplar: Optional[Exemplar] = None,
        **more: str,
    ) -> None:
        named = dict(zip(self._labelnames, labels), **more)
        self.add_sample(self.name + ending, named, value, timestamp, exemplar)


class UnknownMetricFamily(_Family):
    """Values of an unknown type."""

    _kind = "unknown"

    def __init__(
        self,
        name: str,
        documentation: str,
        value: Optional[float] = None,
        labels: Optional[Iterable[str]] = None,
        unit: str = "",
    ) -> None:
        super().__init__(name, documentation, labels, unit, value is not None)
        if value is not None:
            self.add_metric([], value)

    def add_metric(self, labels: Sequence[str], value: float, timestamp: _Time = None) -> None:
        """Adds a series."""
        self._add("", labels, value, timestamp)


UntypedMetricFamily = UnknownMetricFamily


class CounterMetricFamily(_Family):
    """Counters."""

    _kind = "counter"

    def __init__(
        self,
        name: str,
        documentation: str,
        value: Optional[float] = None,
        labels: Optional[Iterable[str]] = None,
        created: Optional[float] = None,
        unit: str = "",
        exemplar: Optional[Exemplar] = None,
    ) -> None:
        name = name[: -len("_total")] if name.endswith("_total") else name
        super().__init__(name, documentation, labels, unit, value is not None)
        if value is not None:
            self.add_metric([], value, created, exemplar=exemplar)

    def add_metric(
        self,
        labels: Sequence[str],
        value: float,
        created: Optional[float] = None,
        timestamp: _Time = None,
        exemplar: Optional[Exemplar] = None,
    ) -> None:
        """Adds a series; ``created`` is when it began, in seconds since 1970."""
        self._add("_total", labels, value, timestamp, exemplar)
        if created is not None:
            self._add("_created", labels, created, timestamp)


class GaugeMetricFamily(UnknownMetricFamily):
    """Gauges."""

    _kind = "gauge"


class SummaryMetricFamily(_Family):
    """Counts and sums of observations."""

    _kind = "summary"

    def __init__(
        self,
        name: str,
        documentation: str,
        count_value: Optional[int] = None,
        sum_value: Optional[float] = None,
        labels: Optional[Iterable[str]] = None,
        unit: str = "",
    ) -> None:
        if (count_value is None) != (sum_value is None):
            raise ValueError("count_value and sum_value belong together, and one of them was given")
        super().__init__(name, documentation, labels, unit, count_value is not None)
        if count_value is not None and sum_value is not None:
            self.add_metric([], count_value, sum_value)

    def add_metric(
        self, labels: Sequence[str], count_value: int, sum_value: float, timestamp: _Time = None
    ) -> None:
        """Adds a series."""
        self._add("_count", labels, count_value, timestamp)
        self._add("_sum", labels, sum_value, timestamp)


class _Bucketed(_Family):
    def _add_buckets(self, labels: Sequence[str], buckets: _Buckets, timestamp: _Time) -> None:
        for threshold, count, *exemplar in buckets:
            self._add("_bucket", labels, count, timestamp, exemplar[0] if exemplar else None, le=threshold)


class HistogramMetricFamily(_Bucketed):
    """Histograms."""

    _kind = "histogram"

    def __init__(
        self,
        name: str,
        documentation: str,
        buckets: Optional[_Buckets] = None,
        sum_value: Optional[float] = None,
        labels: Optional[Iterable[str]] = None,
        unit: str = "",
    ) -> None:
        if sum_value is not None and buckets is None:
            raise ValueError("sum_value needs buckets")
        super().__init__(name, documentation, labels, unit, buckets is not None)
        if buckets is not None:
            self.add_metric([], buckets, sum_value)

    def add_metric(
        self,
        labels: Sequence[str],
        buckets: _Buckets,
        sum_value: Optional[float],
        timestamp: _Time = None,
    ) -> None:
        """Adds a series: thresholds as texts, each with the count of values up to it; +Inf is the last."""
        self._add_buckets(labels, buckets, timestamp)
        # Values below zero make a sum that may fall: it is left out then, as in OpenMetrics.
        if float(buckets[0][0]) >= 0 and sum_value is not None:
            self._add("_count", labels, buckets[-1][1], timestamp)
            self._add("_sum", labels, sum_value, timestamp)


class GaugeHistogramMetricFamily(_Bucketed):
    """Histograms of what is there now."""

    _kind = "gaugehistogram"

    def __init__(
        self,
        name: str,
        documentation: str,
        buckets: Optional[_Buckets] = None,
        gsum_value: Optional[float] = None,
        labels: Optional[Iterable[str]] = None,
        unit: str = "",
    ) -> None:
        super().__init__(name, documentation, labels, unit, buckets is not None)
        if buckets is not None:
            self.add_metric([], buckets, gsum_value)

    def add_metric(
        self,
        labels: Sequence[str],
        buckets: _Buckets,
        gsum_value: Optional[float],
        timestamp: _Time = None,
    ) -> None:
        """Adds a series, as ``HistogramMetricFamily`` does."""
        self._add_buckets(labels, buckets, timestamp)
        self._add("_gcount", labels, buckets[-1][1], timestamp)
        if gsum_value is not None:
            self._add("_gsum", labels, gsum_value, timestamp)


class InfoMetricFamily(_Family):
    """Facts, as labels of a series that is 1."""

    _kind = "info"

    def __init__(
        self,
        name: str,
        documentation: str,
        value: Optional[Mapping[str, str]] = None,
        labels: Optional[Iterable[str]] = None,
    ) -> None:
        super().__init__(name, documentation, labels, "", value is not None)
        if value is not None:
            self.add_metric([], value)

    def add_metric(
        self, labels: Sequence[str], value: Mapping[str, str], timestamp: _Time = None
    ) -> None:
        """Adds a series."""
        named = {**dict(zip(self._labelnames, labels)), **value}
        self.add_sample(self.name + "_info", named, 1, timestamp)


class StateSetMetricFamily(_Family):
    """States that hold or not."""

    _kind = "stateset"

    def __init__(
        self,
        name: str,
        documentation: str,
        value: Optional[Mapping[str, bool]] = None,
        labels: Optional[Iterable[str]] = None,
    ) -> None:
        super().__init__(name, documentation, labels, "", value is not None)
        if value is not None:
            self.add_metric([], value)

    def add_metric(
        self, labels: Sequence[str], value: Mapping[str, bool], timestamp: _Time = None
    ) -> None:
        """Adds a series for each state."""
        for state, holds in sorted(value.items()):
            named = {**dict(zip(self._labelnames, labels)), self.name: state}
            self.add_sample(self.name, named, 1 if holds else 0, timestamp)
