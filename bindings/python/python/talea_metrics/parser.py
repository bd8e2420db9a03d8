"""Reads pages in Prometheus' text format, where ``prometheus_client`` does."""

from collections.abc import Iterator
from typing import IO

from talea_metrics.metrics_core import Metric
from talea_metrics.registry import families_of_page

__all__ = ["text_fd_to_metric_families", "text_string_to_metric_families"]


def text_string_to_metric_families(text: str) -> Iterator[Metric]:
    """The families of a page. A ValueError names the first line that is wrong.

    A counter is named without ``_total``, and its samples with it.
    """
    for family in families_of_page(text, is_openmetrics=False):
        if family.type == "counter":
            bare = family.name.removesuffix("_total")
            if bare == family.name:
                samples = [sample._replace(name=f"{sample.name}_total") for sample in family.samples]
                family.samples = samples
            family.name = bare
        yield family


def text_fd_to_metric_families(fd: IO[str]) -> Iterator[Metric]:
    """The families of a page in a file."""
    return text_string_to_metric_families(fd.read())
