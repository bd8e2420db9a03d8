"""Pages in OpenMetrics, where ``prometheus_client`` has them."""

from typing import Any

from talea_metrics._talea import escape_name
from talea_metrics._page import page

CONTENT_TYPE_LATEST = "application/openmetrics-text; version=1.0.0; charset=utf-8"

UNDERSCORES = "underscores"
ALLOWUTF8 = "allow-utf-8"
DOTS = "dots"
VALUES = "values"


def generate_latest(registry: Any, escaping: str = "underscores", version: str = "1.0.0") -> bytes:
    """The page of a registry in OpenMetrics 1.0.0."""
    return page(registry, f"application/openmetrics-text;version=1.0.0;escaping={escaping}")[0]


def escape_metric_name(s: str, escaping: str = UNDERSCORES) -> str:
    """A metric's name as an escaping shows it."""
    return escape_name(s, escaping, False)


def escape_label_name(s: str, escaping: str = UNDERSCORES) -> str:
    """A label's name as an escaping shows it."""
    return escape_name(s, escaping, True)
