"""What programs for ``prometheus_client``'s multi-process mode call. Talea needs none of it."""

from collections.abc import Iterable
from typing import Any, Optional, Union

from talea._talea import Region
from talea.metrics_core import Metric
from talea.registry import REGISTRY, CollectorRegistry, RegionView, families_of


class MultiProcessCollector(RegionView):
    """Shows the default registry's region, which all processes share, in a registry."""

    def __init__(self, registry: Optional[CollectorRegistry], path: Optional[str] = None) -> None:
        if registry is not None:
            registry.register(self)

    @property
    def region(self) -> Region:  # type: ignore[override]
        """The region that is shown."""
        return REGISTRY._region

    def collect(self) -> Iterable[Metric]:
        """All families of the region."""
        return families_of(self.region)


def mark_process_dead(pid: Union[int, str], path: Optional[str] = None) -> None:
    """Nothing: a process that ended is seen without it."""


def child_exit(server: Any, worker: Any) -> None:
    """Nothing, as a hook for gunicorn."""
