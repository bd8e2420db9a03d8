"""Metrics in shared memory: every worker writes, anyone can scrape, even after a crash.

The names are those of the official ``prometheus_client``. With ``TALEA_REGION=/dev/shm/shop.talea``,
all processes that have it write into one region; without it, a process shares its memory with those
that it forks.
"""

from talea._talea import CollectorRegistry, Counter, Gauge, Histogram, Summary

__all__ = [
    "CONTENT_TYPE_LATEST",
    "REGISTRY",
    "CollectorRegistry",
    "Counter",
    "Gauge",
    "Histogram",
    "Summary",
    "generate_latest",
]

CONTENT_TYPE_LATEST = "text/plain; version=0.0.4; charset=utf-8"


def __getattr__(name):
    # Opened when it is needed first, so that the import alone has no effect outside of the process.
    if name == "REGISTRY":
        return CollectorRegistry._default()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def generate_latest(registry=None):
    """The page of a registry, by default of the default one, in Prometheus' text format."""
    registry = registry or CollectorRegistry._default()
    page, _ = registry._render("")
    return page
