"""Which Python this is."""

import importlib
from collections.abc import Iterable
from typing import Any, Optional

from talea.metrics_core import GaugeMetricFamily, Metric
from talea.registry import REGISTRY, CollectorRegistry


class PlatformCollector:
    """``python_info``: the version of Python and its implementation, as labels."""

    def __init__(
        self, registry: Optional[CollectorRegistry] = REGISTRY, platform: Optional[Any] = None
    ) -> None:
        found: Any = importlib.import_module("platform") if platform is None else platform
        major, minor, patchlevel = found.python_version_tuple()
        info = {
            "version": found.python_version(),
            "implementation": found.python_implementation(),
            "major": major,
            "minor": minor,
            "patchlevel": patchlevel,
        }
        self._family = GaugeMetricFamily("python_info", "Python platform information", labels=info)
        self._family.add_metric(list(info.values()), 1)
        if registry is not None:
            registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """The family with its sample."""
        return [self._family]
