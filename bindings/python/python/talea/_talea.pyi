import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Literal, ParamSpec, TypeVar, final

__all__ = [
    "CollectorRegistry",
    "CountedExceptions",
    "Counter",
    "Gauge",
    "Histogram",
    "InProgress",
    "Summary",
    "Timer",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")

class _Block:
    """A context manager, which is a decorator of functions too, also of async ones."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __call__(self, function: Callable[_P, _R], /) -> Callable[_P, _R]: ...

@final
class Timer(_Block):
    def __enter__(self) -> Timer: ...

@final
class CountedExceptions(_Block):
    def __enter__(self) -> None: ...

@final
class InProgress(_Block):
    def __enter__(self) -> None: ...

@final
class CollectorRegistry:
    """An open region, and the metrics in it.

    ``path`` is a file on tmpfs, such as /dev/shm/shop.talea; without it, memory that this process
    shares with those that it forks. ``size`` is the most bytes that a new region may use, by default
    64 MiB; pages are allocated as they are needed. An OSError says why a region cannot be opened.
    """

    def __new__(
        cls, path: str | os.PathLike[str] | None = None, size: int | None = None
    ) -> CollectorRegistry: ...
    def get_sample_value(
        self, name: str, labels: Mapping[str, str] | None = None
    ) -> float | None:
        """The value of a sample of the page, or None. Cost: that of a page."""
    @staticmethod
    def _default() -> CollectorRegistry: ...
    def _render(self, accept: str) -> tuple[bytes, str]: ...

class Counter:
    """A number that only grows."""

    def __new__(
        cls,
        name: str,
        documentation: str,
        labelnames: Sequence[str] = ...,
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: CollectorRegistry | None = None,
        *,
        limit: int = 20_000,
    ) -> Counter: ...
    def labels(self, *labelvalues: object, **labelkwargs: object) -> Counter: ...
    def remove(self, *labelvalues: object) -> None: ...
    def clear(self) -> None: ...
    def inc(self, amount: float = 1.0) -> None:
        """Adds an amount. A ValueError if it is negative or not finite."""
    def count_exceptions(
        self, exception: type[BaseException] | tuple[type[BaseException], ...] | None = None
    ) -> CountedExceptions: ...

class Gauge:
    """A number that is set, or changes both ways."""

    def __new__(
        cls,
        name: str,
        documentation: str,
        labelnames: Sequence[str] = ...,
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: CollectorRegistry | None = None,
        multiprocess_mode: Literal[
            "mostrecent", "livesum", "livemax", "livemin", "liveall"
        ] = "mostrecent",
        *,
        limit: int = 20_000,
    ) -> Gauge: ...
    def labels(self, *labelvalues: object, **labelkwargs: object) -> Gauge: ...
    def remove(self, *labelvalues: object) -> None: ...
    def clear(self) -> None: ...
    def inc(self, amount: float = 1.0) -> None: ...
    def dec(self, amount: float = 1.0) -> None: ...
    def set(self, value: float) -> None: ...
    def set_to_current_time(self) -> None:
        """Sets the seconds since 1970."""
    def time(self) -> Timer: ...
    def track_inprogress(self) -> InProgress: ...

class Histogram:
    """Observations, counted by thresholds: ascending, without +Inf or with it."""

    def __new__(
        cls,
        name: str,
        documentation: str,
        labelnames: Sequence[str] = ...,
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: CollectorRegistry | None = None,
        buckets: Iterable[float] | None = None,
        *,
        limit: int = 20_000,
    ) -> Histogram: ...
    def labels(self, *labelvalues: object, **labelkwargs: object) -> Histogram: ...
    def remove(self, *labelvalues: object) -> None: ...
    def clear(self) -> None: ...
    def observe(self, amount: float) -> None: ...
    def time(self) -> Timer: ...

class Summary:
    """The count and the sum of observations, and quantiles of the last ten minutes if asked for."""

    def __new__(
        cls,
        name: str,
        documentation: str,
        labelnames: Sequence[str] = ...,
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: CollectorRegistry | None = None,
        quantiles: Sequence[float] | None = None,
        *,
        limit: int = 20_000,
    ) -> Summary: ...
    def labels(self, *labelvalues: object, **labelkwargs: object) -> Summary: ...
    def remove(self, *labelvalues: object) -> None: ...
    def clear(self) -> None: ...
    def observe(self, amount: float) -> None: ...
    def time(self) -> Timer: ...
