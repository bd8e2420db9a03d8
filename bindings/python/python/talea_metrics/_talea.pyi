import os
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, ClassVar, Literal, ParamSpec, TypeVar, final

from talea_metrics.metrics_core import Metric
from talea_metrics.registry import CollectorRegistry

__all__ = [
    "AsgiMiddleware",
    "CountedExceptions",
    "Counter",
    "CurrentValue",
    "Enum",
    "FunctionGauge",
    "Gauge",
    "Histogram",
    "HttpExchange",
    "HttpMeter",
    "HttpRoute",
    "InProgress",
    "InfoFamily",
    "Region",
    "Summary",
    "Timer",
    "WsgiBody",
    "accepts_gzip",
    "asgi_route",
    "disable_created_metrics",
    "enable_created_metrics",
    "escape_name",
    "negotiate",
    "parse",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")

def disable_created_metrics() -> None:
    """Leaves the samples ``_created`` out of this process's pages."""

def enable_created_metrics() -> None:
    """Shows the samples ``_created`` again, which is the default."""

def negotiate(accept: str) -> str: ...
def accepts_gzip(accept: str) -> bool: ...
def parse(page: str, is_openmetrics: bool) -> list[tuple[str, str, str, str, list[Any]]]: ...
def escape_name(name: str, escaping: str, is_label: bool) -> str: ...

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
    """Measures a block or each call of a function, in seconds."""

    def __enter__(self) -> Timer: ...
    def labels(self, *labelvalues: object, **labelkwargs: object) -> None:
        """The label values of the series that takes the duration: they may be known only in the block."""
    @property
    def duration(self) -> float | None:
        """The duration of the last block in seconds, if one has ended."""
    def _observe(self, seconds: float) -> None: ...

@final
class CountedExceptions(_Block):
    def __enter__(self) -> None: ...

@final
class InProgress(_Block):
    def __enter__(self) -> None: ...

@final
class CurrentValue:
    def get(self) -> float: ...

@final
class InfoFamily:
    def begin(self, labelvalues: Sequence[str]) -> None: ...
    def set(self, labelvalues: Sequence[str], facts: Sequence[tuple[str, str]]) -> None: ...
    def remove(self, labelvalues: Sequence[str]) -> None: ...

class AsgiMiddleware:
    def __new__(cls, *_args: Any, **_kwargs: Any) -> AsgiMiddleware: ...
    def __call__(self, scope: Any, receive: Any, send: Any, /) -> Any: ...
    def _begin(self, app: Any, meter: HttpMeter) -> None: ...
    @property
    def _declared(self) -> Any: ...

def asgi_route(app: Any, route: HttpRoute) -> Callable[[Any, Any, Any], Any]:
    """The application of a route, so that the exchange of a request knows the route."""

@final
class HttpRoute: ...

@final
class WsgiBody:
    def __iter__(self) -> WsgiBody: ...
    def __next__(self) -> bytes: ...
    def close(self) -> None: ...

@final
class HttpExchange:
    """A request in flight; for ASGI, to be awaited."""

    def __await__(self) -> HttpExchange: ...
    def __iter__(self) -> HttpExchange: ...
    def __next__(self) -> Any: ...
    def send(self, value: Any) -> Any: ...
    def throw(self, *exception: Any) -> Any: ...
    def enter(self, route: HttpRoute) -> None: ...
    def wait(self) -> None: ...
    def enter_read(self, route: HttpRoute) -> None: ...
    def head(self, status: int) -> None: ...
    def body(self, bytes: int, is_last: bool) -> None: ...
    def is_closed(self) -> bool: ...
    def failed(self) -> None: ...
    def failed_after_head(self) -> None: ...
    def close(self) -> None: ...
    def watch(self, body: Iterable[bytes]) -> WsgiBody: ...

@final
class HttpMeter:
    """The HTTP metrics of a region."""

    def __new__(
        cls,
        region: Region,
        convention: str,
        prefix: str,
        detailed: bool,
        buckets: Sequence[float] | None,
        status_codes: bool,
        constant_labels: dict[str, str],
    ) -> HttpMeter: ...
    @property
    def region(self) -> Region: ...
    def route(self, route: str, methods: Sequence[str] | None) -> HttpRoute: ...
    def read_route(
        self, route: str, methods: Sequence[str] | None, has_own_head: bool
    ) -> HttpRoute: ...
    def arrived(
        self, method: str, is_http_10: bool, is_https: bool, length: int
    ) -> HttpExchange: ...

@final
class FunctionGauge:
    def set(self, value: float) -> None: ...

@final
class Region:
    """An open region."""

    def __new__(
        cls, path: str | os.PathLike[str] | None = None, size: int | None = None
    ) -> Region: ...
    @staticmethod
    def from_env() -> Region: ...
    def is_of_process(self) -> bool: ...
    def functions(self) -> list[tuple[FunctionGauge, Callable[[], float]]]: ...
    def render(self, accept: str, is_binary: bool, names: Sequence[str]) -> tuple[bytes, str]: ...
    def families(self, names: Sequence[str] | None = None) -> list[tuple[str, str, str, str, list[Any]]]: ...
    def unregister(self, name: str) -> None: ...
    def info(self, name: str, documentation: str, labelnames: Sequence[str]) -> tuple[Region, InfoFamily]: ...

class _Metric:
    """The methods that all kinds have. Any thread may call anything."""

    _type: ClassVar[str]
    def remove(self, *labelvalues: object) -> None:
        """Removes the series of these label values, in all processes."""
    def remove_by_labels(self, labels: dict[str, Any]) -> None:
        """Removes all series that have these labels among others, in all processes."""
    def clear(self) -> None:
        """Removes all series of a metric with labels, in all processes."""
    def describe(self) -> Iterable[Metric]: ...
    def collect(self) -> Iterable[Metric]: ...
    @property
    def _name(self) -> str: ...
    @property
    def _documentation(self) -> str: ...
    @property
    def _unit(self) -> str: ...
    @property
    def _labelnames(self) -> tuple[str, ...]: ...
    @property
    def _labelvalues(self) -> tuple[str, ...]: ...
    @property
    def _metrics(self) -> dict[tuple[str, ...], Any]: ...
    @property
    def _region(self) -> Region: ...

class Counter(_Metric):
    """A number that only grows."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labelnames: Iterable[str] | None = None,
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: CollectorRegistry | None = ...,
        *,
        limit: int = 20_000,
    ) -> None: ...
    def labels(self, *labelvalues: object, **labelkwargs: object) -> Counter: ...
    def inc(self, amount: float = 1.0, exemplar: dict[str, str] | None = None) -> None:
        """Adds an amount. A ValueError if it is negative or not finite, or if the exemplar is refused."""
    def reset(self) -> None:
        """Counts from 0 again, in all processes."""
    def count_exceptions(
        self, exception: type[BaseException] | tuple[type[BaseException], ...] | None = None
    ) -> CountedExceptions: ...
    @property
    def _value(self) -> CurrentValue: ...

class Gauge(_Metric):
    """A number that is set, or changes both ways."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labelnames: Iterable[str] | None = None,
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: CollectorRegistry | None = ...,
        multiprocess_mode: Literal[
            "mostrecent",
            "livemostrecent",
            "sum",
            "livesum",
            "max",
            "livemax",
            "min",
            "livemin",
            "all",
            "liveall",
        ] = "mostrecent",
        *,
        limit: int = 20_000,
    ) -> None: ...
    def labels(self, *labelvalues: object, **labelkwargs: object) -> Gauge: ...
    def inc(self, amount: float = 1.0) -> None: ...
    def dec(self, amount: float = 1.0) -> None: ...
    def set(self, value: float) -> None: ...
    def set_to_current_time(self) -> None:
        """Sets the seconds since 1970."""
    def set_function(self, f: Callable[[], float]) -> None:
        """Takes the value from a function whenever this process shows the registry."""
    def time(self) -> Timer: ...
    def track_inprogress(self) -> InProgress: ...
    @property
    def _value(self) -> CurrentValue: ...

class Histogram(_Metric):
    """Observations, counted by thresholds: ascending, without +Inf or with it. ``native`` adds
    exponential buckets, which Prometheus reads in its protobuf format."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labelnames: Iterable[str] | None = None,
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: CollectorRegistry | None = ...,
        buckets: Iterable[float | str] = ...,
        native: bool = False,
        quantiles: Sequence[float] | None = None,
        window: float = 600,
        *,
        limit: int = 20_000,
    ) -> None: ...
    def labels(self, *labelvalues: object, **labelkwargs: object) -> Histogram: ...
    DEFAULT_BUCKETS: ClassVar[tuple[float, ...]]
    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None: ...
    def time(self) -> Timer: ...
    @property
    def _upper_bounds(self) -> list[float]: ...

class Summary(_Metric):
    """The count and the sum of observations, and quantiles of the last ``window`` seconds if asked for."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labelnames: Iterable[str] | None = None,
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: CollectorRegistry | None = ...,
        quantiles: Sequence[float] | None = None,
        window: float = 600,
        *,
        limit: int = 20_000,
    ) -> None: ...
    def labels(self, *labelvalues: object, **labelkwargs: object) -> Summary: ...
    def observe(self, amount: float) -> None: ...
    def time(self) -> Timer: ...

class Enum(_Metric):
    """One of up to 64 states; the first until ``state`` is called."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labelnames: Iterable[str] | None = None,
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: CollectorRegistry | None = ...,
        states: Sequence[str] | None = None,
        *,
        limit: int = 20_000,
    ) -> None: ...
    def labels(self, *labelvalues: object, **labelkwargs: object) -> Enum: ...
    def state(self, state: str) -> None:
        """Sets the state. A ValueError if the definition has no such state."""
    @property
    def _states(self) -> list[str]: ...
