"""Reads pages in OpenMetrics, where ``prometheus_client`` does."""

from collections.abc import Iterator
from typing import IO

from talea_metrics.metrics_core import Metric
from talea_metrics.registry import families_of_page

__all__ = ["text_fd_to_metric_families", "text_string_to_metric_families"]


def text_string_to_metric_families(text: str) -> Iterator[Metric]:
    """The families of a page. A ValueError names the first line that is wrong."""
    return families_of_page(text, is_openmetrics=True)


def text_fd_to_metric_families(fd: IO[str]) -> Iterator[Metric]:
    """The families of a page in a file."""
    return text_string_to_metric_families(fd.read())
