"""The work of Python's garbage collector in this process."""

import gc
from collections.abc import Iterable
from typing import Optional

from talea_metrics.metrics_core import CounterMetricFamily, Metric
from talea_metrics.registry import REGISTRY, CollectorRegistry

_FAMILIES = {
    "collected": ("python_gc_objects_collected", "Objects collected during gc"),
    "uncollectable": ("python_gc_objects_uncollectable", "Uncollectable objects found during GC"),
    "collections": ("python_gc_collections", "Number of times this generation was collected"),
}


class GCCollector:
    """Counts of each generation of the garbage collector."""

    def __init__(self, registry: Optional[CollectorRegistry] = REGISTRY) -> None:
        if registry is not None:
            registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """The families with their samples."""
        for statistic, (name, documentation) in _FAMILIES.items():
            family = CounterMetricFamily(name, documentation, labels=["generation"])
            for generation, counts in enumerate(gc.get_stats()):
                family.add_metric([str(generation)], counts[statistic])
            yield family


GC_COLLECTOR = GCCollector(registry=None)
REGISTRY._register_own(GC_COLLECTOR)
