"""The names that ``prometheus_client.core`` has."""

from talea.metrics import Counter, Enum, Gauge, Histogram, Info, Summary
from talea.metrics_core import (
    CounterMetricFamily,
    GaugeHistogramMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
    SummaryMetricFamily,
    UnknownMetricFamily,
    UntypedMetricFamily,
)
from talea.registry import REGISTRY, CollectorRegistry, DuplicateTimeseries
from talea.samples import BucketSpan, Exemplar, NativeHistogram, Sample, Timestamp

__all__ = [
    "REGISTRY",
    "BucketSpan",
    "CollectorRegistry",
    "Counter",
    "CounterMetricFamily",
    "DuplicateTimeseries",
    "Enum",
    "Exemplar",
    "Gauge",
    "GaugeHistogramMetricFamily",
    "GaugeMetricFamily",
    "Histogram",
    "HistogramMetricFamily",
    "Info",
    "InfoMetricFamily",
    "Metric",
    "NativeHistogram",
    "Sample",
    "StateSetMetricFamily",
    "Summary",
    "SummaryMetricFamily",
    "Timestamp",
    "UnknownMetricFamily",
    "UntypedMetricFamily",
]
