"""Which Python this is."""

import importlib
from collections.abc import Iterable
from typing import Any, Optional

from talea_metrics.metrics_core import GaugeMetricFamily, Metric
from talea_metrics.registry import REGISTRY, CollectorRegistry


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
        if found.system() == "Java":
            version, _, (name, release, vendor), _ = found.java_ver()
            info |= {
                "jvm_version": version,
                "jvm_release": release,
                "jvm_vendor": vendor,
                "jvm_name": name,
            }
        self._family = GaugeMetricFamily("python_info", "Python platform information", labels=info)
        self._family.add_metric(list(info.values()), 1)
        if registry is not None:
            registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """The family with its sample."""
        return [self._family]


PLATFORM_COLLECTOR = PlatformCollector(registry=None)
REGISTRY._register_own(PLATFORM_COLLECTOR, is_of_process=False)
