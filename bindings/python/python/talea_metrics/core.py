"""The names that ``prometheus_client.core`` has."""

from talea_metrics.metrics import Counter, Enum, Gauge, Histogram, Info, Summary
from talea_metrics.metrics_core import (
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
from talea_metrics.registry import REGISTRY, CollectorRegistry, DuplicateTimeseries
from talea_metrics.samples import BucketSpan, Exemplar, NativeHistogram, Sample, Timestamp

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
