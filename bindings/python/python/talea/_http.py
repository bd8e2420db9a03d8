"""What the middleware of all interfaces have in common."""

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from talea._talea import HttpMeter
from talea.registry import REGISTRY, CollectorRegistry


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
    region = registry._region
    return HttpMeter(region, convention, prefix, detailed, buckets, status_codes, labels)


def template(prefix: str, route: Any) -> str:
    """The template of a route of Starlette or FastAPI, below a mount."""
    path: str = getattr(route, "path_format", None) or route.path
    return prefix + path or "/"


def declared_length(text: Optional[str]) -> int:
    """The length of a request's body that its head declares, or 0."""
    return int(text) if text and text.isdecimal() and len(text) < 19 else 0
