"""The kinds of metrics, by the names of ``prometheus_client.metrics``."""

import os
from abc import ABCMeta
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from talea_metrics._talea import (
    Counter,
    Enum,
    Gauge,
    Histogram,
    Region,
    Summary,
    disable_created_metrics,
    enable_created_metrics,
)
from talea_metrics.metrics_core import Metric
from talea_metrics.registry import REGISTRY, CollectorRegistry, families_of, names_of, region_of_none

__all__ = [
    "Counter",
    "Enum",
    "Gauge",
    "Histogram",
    "Info",
    "MetricWrapperBase",
    "Summary",
    "disable_created_metrics",
    "enable_created_metrics",
]


def _get_use_created() -> bool:
    disabled = os.environ.get("PROMETHEUS_DISABLE_CREATED_SERIES", "False").lower() in ("true", "1", "t")
    (disable_created_metrics if disabled else enable_created_metrics)()
    return not disabled


_get_use_created()


def _describe(metric: Any) -> list[Metric]:
    family = Metric(metric._name, metric._documentation, metric._type)
    family.unit = metric._unit
    return [family]


def _collect(metric: Any) -> list[Metric]:
    """The family with its samples; of a child, its own samples without their label names."""
    family = _describe(metric)[0]
    # OpenMetrics has the parts of a summary or a histogram apart, as families of no type, if its sum may fall.
    parts = names_of(family.name, family.type)
    labels = dict(zip(metric._labelnames, metric._labelvalues))
    for found in families_of(metric._region, [family.name]):
        is_own = found.name == family.name or (found.type == "unknown" and found.name in parts)
        for sample in found.samples if is_own else ():
            if all(sample.labels.get(name) == value for name, value in labels.items()):
                own = {name: value for name, value in sample.labels.items() if name not in labels}
                family.samples.append(sample._replace(labels=own))
    return [family]


class Info:
    """Facts that hold while a process runs, such as its version: a series of 1 with the facts as labels.

    The facts are those of all processes: the latest call holds.
    """

    _type = "info"
    _unit = ""

    def __init__(
        self,
        name: str,
        documentation: str,
        labelnames: Iterable[str] = (),
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: Optional[CollectorRegistry] = REGISTRY,
    ) -> None:
        self._name = "_".join(part for part in (namespace, subsystem, name) if part)
        if unit:
            raise ValueError(f"the info {self._name} cannot have a unit, and {unit!r} was given")
        self._documentation = documentation
        self._labelnames = tuple(labelnames)
        self._labelvalues: tuple[str, ...] = ()
        self._metrics: dict[tuple[str, ...], "Info"] = {}
        # A registry that is not Talea's has no region, and calls `collect`.
        region_for = getattr(registry, "_region_for", None)
        region: Region = region_for(self._type, self._name) if region_for else region_of_none(1 << 20)
        # With its ending, also if the name has one: as the official client names it.
        name = f"{self._name}_info"
        self._region, self._family = region.info(name, documentation, list(self._labelnames))
        if not self._labelnames:
            self._family.begin([])
        if registry is not None:
            registry.register(self)

    def labels(self, *labelvalues: object, **labelkwargs: object) -> "Info":
        """The info of these label values."""
        if self._labelvalues or not self._labelnames:
            raise ValueError(f"the info {self._name} has its label values already, or no labelnames")
        if labelkwargs and not labelvalues and sorted(labelkwargs) == sorted(self._labelnames):
            labelvalues = tuple(labelkwargs[name] for name in self._labelnames)
        elif labelkwargs or len(labelvalues) != len(self._labelnames):
            found = f"{len(labelvalues)} by position and {len(labelkwargs)} by name"
            raise ValueError(f"labels takes values of {self._labelnames}, not {found}")
        key = tuple(str(value) for value in labelvalues)
        child = self._metrics.get(key)
        if child is None:
            child = object.__new__(type(self))
            child.__dict__.update(self.__dict__, _labelvalues=key)
            self._family.begin(list(key))
        # Another thread may have made one meanwhile: all get the first.
        return self._metrics.setdefault(key, child)

    def info(self, val: Mapping[str, str]) -> None:
        """Sets the facts, in place of earlier ones."""
        if self._labelnames and not self._labelvalues:
            raise ValueError(f"info metric is missing label values: call labels with {self._labelnames}")
        twice = set(self._labelnames).intersection(val)
        if twice:
            raise ValueError(f"facts cannot be named as the labels {sorted(twice)} of {self._name}")
        if "" in val:
            raise ValueError(f"a fact of {self._name} has no name; name what its value says")
        if any(value is None for value in val.values()):
            raise ValueError("the value of a fact is None, and a text is expected")
        self._family.set(list(self._labelvalues), [(name, str(value)) for name, value in val.items()])

    def remove(self, *labelvalues: object) -> None:
        """Removes the facts of these label values, in all processes."""
        key = tuple(str(value) for value in labelvalues)
        if not self._labelnames or len(key) != len(self._labelnames):
            raise ValueError(f"remove takes values of {self._labelnames}, not {len(key)}")
        self._metrics.pop(key, None)
        self._family.remove(list(key))

    def remove_by_labels(self, labels: Mapping[str, object]) -> None:
        """Removes the facts of all label values that have these among others, in all processes."""
        unknown = set(labels).difference(self._labelnames)
        if unknown or not self._labelnames:
            raise ValueError(f"the labels of {self._name} are {self._labelnames}, not {sorted(unknown)}")
        if labels:
            self._remove_matching({name: str(value) for name, value in labels.items()})

    def clear(self) -> None:
        """Removes all facts of label values, in all processes."""
        if self._labelnames:
            self._remove_matching({})

    def _remove_matching(self, labels: Mapping[str, str]) -> None:
        for sample in _collect(self)[0].samples:
            if all(sample.labels[name] == value for name, value in labels.items()):
                self.remove(*(sample.labels[name] for name in self._labelnames))

    def describe(self) -> list[Metric]:
        """The metric without samples."""
        return _describe(self)

    def collect(self) -> list[Metric]:
        """The metric with its samples."""
        return _collect(self)

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__qualname__}({self._name})"


class MetricWrapperBase(metaclass=ABCMeta):
    """The class of all kinds of metrics, for libraries that ask by this name. It is no base to derive from."""


for _kind in (Counter, Enum, Gauge, Histogram, Info, Summary):
    MetricWrapperBase.register(_kind)
