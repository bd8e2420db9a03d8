"""The calls of programs for ``prometheus_client``'s multi-process mode. Talea needs none of them."""

import os
from collections.abc import Iterable
from typing import Any, Optional, Union

from talea_metrics._talea import Region
from talea_metrics.metrics_core import Metric
from talea_metrics.registry import REGISTRY, CollectorRegistry, RegionView, default_path, families_of


# Those of folders that were named in code. Programs make a collector for each scrape.
_opened: dict[str, Region] = {}


class MultiProcessCollector(RegionView):
    """Shows the default registry's region, which all processes share, in a registry.

    ``path`` is the folder that the others have in PROMETHEUS_MULTIPROC_DIR, if this process has it not. An
    OSError says why the region in it cannot be opened.
    """

    def __init__(self, registry: Optional[CollectorRegistry], path: Optional[str] = None) -> None:
        file = os.path.join(path, "metrics.talea") if path else None
        if file is None or os.environ.get("TALEA_REGION") or file == default_path():
            self._of_folder = None
        else:
            self._of_folder = _opened.get(file) or _opened.setdefault(file, Region(file))
        if registry is not None:
            registry.register(self)

    @property
    def region(self) -> Region:  # type: ignore[override]
        """The region that is shown."""
        return REGISTRY._region if self._of_folder is None else self._of_folder

    def collect(self) -> Iterable[Metric]:
        """All families of the region."""
        return families_of(self.region)


def mark_process_dead(pid: Union[int, str], path: Optional[str] = None) -> None:
    """Nothing: a process that ended is seen without it."""


def child_exit(server: Any, worker: Any) -> None:
    """Nothing, as a hook for gunicorn."""
