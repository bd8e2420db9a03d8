"""Registries: an open region, and collectors of this process beside it."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from threading import RLock
from typing import Any, Optional, Protocol, Union

from talea_metrics._talea import Region, parse
from talea_metrics.metrics_core import Metric
from talea_metrics.samples import Exemplar, Sample

_ENDINGS = {
    "counter": ("_total", "_created"),
    "summary": ("_sum", "_count", "_created"),
    "histogram": ("_bucket", "_sum", "_count", "_created"),
    "gaugehistogram": ("_bucket", "_gsum", "_gcount"),
    "info": ("_info",),
}


# One for all registries, so that a fork can wait for it: a lock that another thread holds stays locked in
# the child. A handler of a signal or a finalizer that uses a registry may run in a thread that holds it.
_LOCK = RLock()
# Whether a thread has it to fork. uWSGI forks without asking, and may call the rest nevertheless.
_is_forking = False


def _before_fork() -> None:
    global _is_forking
    _LOCK.acquire()
    _is_forking = True


def _after_fork() -> None:
    global _is_forking
    if _is_forking:
        _is_forking = False
        _LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


class Collector(Protocol):
    """An object that can be registered. It may have ``describe``, which returns families without samples."""

    def collect(self) -> Iterable[Metric]:
        """The families, with their samples."""


class DuplicateTimeseries(ValueError):
    """A name is taken in this registry."""

    def __init__(self, duplicates: set[str]) -> None:
        names = ", ".join(sorted(duplicates))
        super().__init__(f"Duplicated timeseries in CollectorRegistry: {names}; choose another name")
        self.duplicates = duplicates


def names_of(name: str, kind: str) -> list[str]:
    return [name, *(name + ending for ending in _ENDINGS.get(kind, ()))]


def refresh(region: Region) -> None:
    """Sets the gauges of this process that take their values from functions."""
    for gauge, function in region.functions():
        gauge.set(function())


def families_of(region: Region, names: Optional[list[str]] = None) -> Iterator[Metric]:
    """The families of a region, with the samples of all processes."""
    refresh(region)
    return _families(region.families(names))


def families_of_page(page: str, is_openmetrics: bool) -> Iterator[Metric]:
    """The families of a page. A ValueError names the first line that is wrong."""
    return _families(parse(page, is_openmetrics))


def _families(found: Iterable[Any]) -> Iterator[Metric]:
    for name, documentation, kind, unit, samples in found:
        family = Metric(name, documentation, kind)
        family.unit = unit
        family.samples = [
            Sample(name, labels, value, time, Exemplar(*exemplar) if exemplar else None)
            for name, labels, value, time, exemplar in samples
        ]
        yield family


class RegionView:
    """A collector that shows a whole region."""

    region: Region


class CollectorRegistry:
    """Metrics in a region, and custom collectors of this process.

    ``path`` is a file on tmpfs, such as /dev/shm/shop.talea; without it, the region is memory that this
    process shares with those that it forks, or with PROMETHEUS_MULTIPROC_DIR that of all processes. ``size`` is the most bytes that a new region may use, by
    default 64 MiB; pages are allocated as they are needed. The region is opened when it is needed first;
    an OSError says why it cannot be. The other arguments are those of ``prometheus_client``.
    """

    def __init__(
        self,
        auto_describe: bool = False,
        target_info: Optional[Mapping[str, str]] = None,
        support_collectors_without_names: bool = False,
        *,
        path: Union[str, "os.PathLike[str]", None] = None,
        size: Optional[int] = None,
    ) -> None:
        self._collector_to_names: dict[Any, list[str]] = {}
        self._names_to_collectors: dict[str, Any] = {}
        # Those that are not in the region.
        self._custom: list[Any] = []
        self._collectors_without_names: list[Any] = []
        self._auto_describe = auto_describe
        self._support_collectors_without_names = support_collectors_without_names
        self._lock = _LOCK
        self._opened: Optional[Region] = None
        self._path = path
        self._size = size
        self._target_info: Optional[Mapping[str, str]] = None
        self.set_target_info(target_info)

    def _open(self) -> tuple[Region, Optional[str]]:
        """The region, and a warning."""
        return REGISTRY._region if self._is_within_default() else Region(self._path, self._size), None

    @property
    def _region(self) -> Region:
        with self._lock:
            if self._opened is not None:
                return self._opened
            self._opened, warning = self._open()
            opened = self._opened
        # A handler of warnings may use the registry.
        if warning:
            warnings.warn(warning, RuntimeWarning, stacklevel=2)
        return opened

    def _is_within_default(self) -> bool:
        """Whether its metrics are in the region of the default registry, since all processes have that one alone."""
        return self._path is None and self._size is None and _folder() is not None

    def _regions(self) -> list[tuple[Region, Optional[list[str]]]]:
        """The regions that this registry shows, each with the names of samples that it has there; None for all."""
        shown: dict[int, tuple[Region, Optional[list[str]]]] = {}
        # A file has what other processes count, also if this one counts nothing.
        if self._path is not None or self._opened is not None:
            names = self._names_in_region() if self._is_within_default() else None
            if names != []:
                shown[id(self._region)] = (self._region, names)
        for region in [view.region for view in self._custom if isinstance(view, RegionView)]:
            shown[id(region)] = (region, None)
        return list(shown.values())

    def _names_in_region(self) -> list[str]:
        """The names of its metrics that are in its region."""
        with self._lock:
            others = set(map(id, self._custom))
            names = self._collector_to_names.items()
            return [name for one, own in names if id(one) not in others for name in own]

    def _others(self) -> list[Any]:
        """The collectors that are in none of the regions."""
        return [one for one in self._custom if not isinstance(one, RegionView) and self._is_shown(one)]

    def _is_shown(self, collector: Any) -> bool:
        return True

    def _region_for(self, kind: str, name: str) -> Region:
        """The region for a metric that is about to be defined."""
        with self._lock:
            self._check(names_of(name, kind))
        return self._region

    def _check(self, names: Iterable[str]) -> None:
        duplicates = set(self._names_to_collectors).intersection(names)
        if duplicates:
            raise DuplicateTimeseries(duplicates)

    def register(self, collector: Any) -> None:
        """Adds a collector. A DuplicateTimeseries, which is a ValueError, if a name of it is taken."""
        # A mock has any attribute, and is true.
        if getattr(collector, "_is_ended", False) is True:
            raise ValueError(f"{collector!r} was unregistered, and its series are gone; make the metric anew")
        names = self._get_names(collector)
        with self._lock:
            self._check(names)
            if collector in self._collector_to_names:
                # One whose names are not known. It is shown once, and removed at once.
                return
            for name in names:
                self._names_to_collectors[name] = collector
            self._collector_to_names[collector] = names
            if getattr(collector, "_region", None) is None or collector._region is not self._opened:
                self._custom.append(collector)
            if self._support_collectors_without_names and not names:
                self._collectors_without_names.append(collector)

    def unregister(self, collector: Any) -> None:
        """Removes a collector. A metric of the region goes with its series, in all processes."""
        with self._lock:
            for name in self._collector_to_names.pop(collector):
                del self._names_to_collectors[name]
            if collector in self._collectors_without_names:
                self._collectors_without_names.remove(collector)
            if collector in self._custom:
                self._custom.remove(collector)
                return
        # A metric of the same definition has none of them, also if somebody keeps a child.
        collector._is_ended = True
        collector.clear()
        if collector._type == "gauge" and not collector._labelnames:
            collector.set(0)
        endings = {"counter": "_total", "info": "_info"}
        collector._region.unregister(collector._name + endings.get(collector._type, ""))

    def _get_names(self, collector: Any) -> list[str]:
        describe = getattr(collector, "describe", None)
        if describe is None and self._auto_describe:
            describe = collector.collect
        families = describe() if describe else []
        return [name for family in families for name in names_of(family.name, family.type)]

    def collect(self) -> Iterator[Metric]:
        """All families, with their samples."""
        with self._lock:
            target = self._target_info_metric() if self._target_info else None
        if target:
            yield target
        for region, names in self._regions():
            yield from families_of(region, names)
        for collector in self._others():
            yield from collector.collect()

    def restricted_registry(self, names: Iterable[str]) -> "RestrictedRegistry":
        """A view of the samples that have these names."""
        return RestrictedRegistry(names, self)

    def set_target_info(self, labels: Optional[Mapping[str, str]]) -> None:
        """Sets the labels of the sample ``target_info``; without labels there is none."""
        with self._lock:
            if labels and not self._target_info:
                if "target_info" in self._names_to_collectors:
                    raise ValueError("the registry has a metric target_info already; unregister it first")
                self._names_to_collectors["target_info"] = self
            elif not labels and self._target_info:
                del self._names_to_collectors["target_info"]
            self._target_info = labels

    def get_target_info(self) -> Optional[Mapping[str, str]]:
        """The labels of ``target_info``."""
        with self._lock:
            return self._target_info

    def _target_info_metric(self) -> Metric:
        family = Metric("target", "Target metadata", "info")
        family.add_sample("target_info", self._target_info or {}, 1)
        return family

    def get_sample_value(
        self, name: str, labels: Optional[Mapping[str, str]] = None
    ) -> Optional[float]:
        """The value of a sample, or None. Cost: that of a page."""
        labels = labels or {}
        for family in self.collect():
            for sample in family.samples:
                if sample.name == name and sample.labels == labels:
                    return sample.value
        return None


class RestrictedRegistry:
    """The samples of a registry that have certain names."""

    def __init__(self, names: Iterable[str], registry: CollectorRegistry) -> None:
        self._name_set = set(names)
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        """The families, with the wanted samples alone."""
        registry = self._registry
        collectors = list(registry._collectors_without_names)
        with registry._lock:
            target = None
            if "target_info" in self._name_set and registry._target_info:
                target = registry._target_info_metric()
            for name in sorted(self._name_set):
                collector = registry._names_to_collectors.get(name)
                if collector not in (None, registry, *collectors) and registry._is_shown(collector):
                    collectors.append(collector)
        if target:
            yield target
        for collector in collectors:
            for family in collector.collect():
                restricted = family._restricted_metric(self._name_set)
                if restricted:
                    yield restricted


def _folder() -> Optional[str]:
    """The folder of the official client's multi-process mode, if the program is in that."""
    variables = ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir")
    return next((found for found in map(os.environ.get, variables) if found), None)


def default_path() -> Optional[str]:
    """The file of the default registry, if the environment names one."""
    folder = _folder()
    path = os.environ.get("TALEA_REGION")
    return path or (os.path.join(folder, "metrics.talea") if folder else None)


def region_of_none(size: Optional[int]) -> Region:
    """The region of a metric without a registry."""
    return Region(None, size) if _folder() is None else REGISTRY._region


class _DefaultRegistry(CollectorRegistry):
    """The registry of metrics that name none.

    It is the file of TALEA_REGION or, for programs that were written for ``prometheus_client``,
    metrics.talea in the folder of PROMETHEUS_MULTIPROC_DIR; without them, memory of this process. If the
    file cannot be opened, a RuntimeWarning says why, and it is memory of this process too.
    """

    def __init__(self) -> None:
        super().__init__(auto_describe=True)
        self._process = os.getpid()
        self._of_process: list[Any] = []
        self._of_program: list[Any] = []

    def _register_own(self, collector: Any, is_of_process: bool = True) -> None:
        """Registers a collector that says nothing about a region of many programs, or about one of many processes."""
        (self._of_process if is_of_process else self._of_program).append(collector)
        self.register(collector)

    def _is_shown(self, collector: Any) -> bool:
        if any(collector is one for one in self._of_program):
            return default_path() is None
        if any(collector is one for one in self._of_process):
            # Of the processes that share memory after a fork, the first alone.
            return default_path() is None and self._process == os.getpid()
        return True

    def _is_within_default(self) -> bool:
        return False

    def _open(self) -> tuple[Region, Optional[str]]:
        try:
            return Region.from_env() if os.environ.get("TALEA_REGION") else Region(default_path()), None
        except OSError as error:
            return Region(), f"{error}. Until then this process and those that it forks count for themselves"

    def _regions(self) -> list[tuple[Region, Optional[list[str]]]]:
        if default_path():
            # It may have what other processes count, also if this one counts nothing.
            _ = self._region
        return super()._regions()


REGISTRY: _DefaultRegistry = _DefaultRegistry()
