"""The common parts of the middleware of all interfaces."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from talea_metrics._talea import HttpMeter, HttpRoute, Region
from talea_metrics.metrics_core import Metric
from talea_metrics.registry import REGISTRY, CollectorRegistry, RegionView, families_of


# Where the environment or the scope of a request has its exchange.
KEY = "talea.exchange"


def meter(
    registry: CollectorRegistry = REGISTRY,
    convention: str = "prometheus",
    prefix: str = "",
    detailed: bool = False,
    buckets: Optional[Sequence[float]] = None,
    status_codes: bool = False,
    constant_labels: Optional[Mapping[str, str]] = None,
) -> HttpMeter:
    """The HTTP metrics of a registry.

    ``convention`` names the metrics: ``prometheus`` as Talea does, ``opentelemetry``, or as
    ``instrumentator`` (prometheus-fastapi-instrumentator) or ``starlette_exporter`` do, so that dashboards
    go on working. ``prefix`` begins each name. Of the first convention, ``detailed`` adds the time to the end
    of responses and the bytes of bodies, and ``status_codes`` has codes in place of classes. ``buckets``
    are thresholds of durations, in seconds. A ValueError if any of it cannot be used.
    """
    labels = dict(constant_labels or {})
    if convention == "starlette_exporter":
        labels.setdefault("app_name", "starlette")
    # One that was full stays so: several middlewares have the same metrics.
    own = [one for one in registry._custom if isinstance(one, _OwnRegion)]
    region = own[0].region if own else registry._region
    made = HttpMeter(region, convention, prefix, detailed, buckets, status_codes, labels)
    if made.region is not region or (registry._is_within_default() and not own):
        registry.register(_OwnRegion(made.region))
    return made


class Routes(dict[str, HttpRoute]):
    """The routes of a meter by their templates, declared when they are first asked for."""

    def __init__(self, meter: HttpMeter) -> None:
        self._meter = meter

    def __missing__(self, template: str) -> HttpRoute:
        return self.setdefault(template, self._meter.route(template, None))


class _OwnRegion(RegionView):
    """Metrics that the registry's region had no room for."""

    def __init__(self, region: Region) -> None:
        self.region = region

    def describe(self) -> Iterable[Metric]:
        """Nothing: the names are not taken, so that there may be more of these."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """The families with their samples."""
        return families_of(self.region)


def template(prefix: str, route: Any) -> str:
    """The template of a route of Starlette or FastAPI, below a mount."""
    path: str = getattr(route, "path_format", None) or route.path
    return prefix + path or "/"


def declared_length(text: Optional[str]) -> int:
    """The length of a request's body that its head declares, or 0."""
    return int(text) if text and text.isdecimal() and len(text) < 19 else 0
