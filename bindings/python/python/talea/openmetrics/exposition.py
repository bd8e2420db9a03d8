"""Pages in OpenMetrics, where ``prometheus_client`` has them."""

from typing import Any

from talea.exposition import page

CONTENT_TYPE_LATEST = "application/openmetrics-text; version=1.0.0; charset=utf-8"

UNDERSCORES = "underscores"
ALLOWUTF8 = "allow-utf-8"
DOTS = "dots"
VALUES = "values"


def generate_latest(registry: Any, escaping: str = "underscores", version: str = "1.0.0") -> bytes:
    """The page of a registry in OpenMetrics 1.0.0."""
    return page(registry, f"application/openmetrics-text;version=1.0.0;escaping={escaping}")[0]
