"""Metrics in shared memory: every worker writes, anyone can scrape, even after a crash.

The names are those of the official ``prometheus_client``. With ``TALEA_REGION=/dev/shm/shop.talea``,
all processes that have it write into one region; without it, a process shares its memory with those
that it forks.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from talea_metrics._http import meter as http_meter
from talea_metrics.exposition import (
    CONTENT_TYPE_LATEST,
    CONTENT_TYPE_PLAIN_0_0_4,
    CONTENT_TYPE_PLAIN_1_0_0,
    LAZY,
    generate_latest,
    write_to_textfile,
)
from talea_metrics.gc_collector import GC_COLLECTOR, GCCollector
from talea_metrics.metrics import (
    Counter,
    Enum,
    Gauge,
    Histogram,
    Info,
    Summary,
    disable_created_metrics,
    enable_created_metrics,
)
from talea_metrics.metrics_core import Metric
from talea_metrics.platform_collector import PLATFORM_COLLECTOR, PlatformCollector
from talea_metrics.process_collector import PROCESS_COLLECTOR, ProcessCollector
from talea_metrics.registry import REGISTRY, CollectorRegistry

if TYPE_CHECKING:
    from talea_metrics.exposition import MetricsHandler as MetricsHandler
    from talea_metrics.exposition import delete_from_gateway as delete_from_gateway
    from talea_metrics.exposition import instance_ip_grouping_key as instance_ip_grouping_key
    from talea_metrics.exposition import make_asgi_app as make_asgi_app
    from talea_metrics.exposition import make_wsgi_app as make_wsgi_app
    from talea_metrics.exposition import push_to_gateway as push_to_gateway
    from talea_metrics.exposition import pushadd_to_gateway as pushadd_to_gateway
    from talea_metrics.exposition import start_http_server as start_http_server
    from talea_metrics.exposition import start_wsgi_server as start_wsgi_server

__all__ = [
    "CONTENT_TYPE_LATEST",
    "CONTENT_TYPE_PLAIN_0_0_4",
    "CONTENT_TYPE_PLAIN_1_0_0",
    "GC_COLLECTOR",
    "PLATFORM_COLLECTOR",
    "PROCESS_COLLECTOR",
    "REGISTRY",
    "CollectorRegistry",
    "Counter",
    "Enum",
    "GCCollector",
    "Gauge",
    "Histogram",
    "Info",
    "Metric",
    "MetricsHandler",
    "PlatformCollector",
    "ProcessCollector",
    "Summary",
    "delete_from_gateway",
    "disable_created_metrics",
    "enable_created_metrics",
    "generate_latest",
    "http_meter",
    "install_as_prometheus_client",
    "instance_ip_grouping_key",
    "make_asgi_app",
    "make_wsgi_app",
    "push_to_gateway",
    "pushadd_to_gateway",
    "start_http_server",
    "start_wsgi_server",
    "write_to_textfile",
]


def install_as_prometheus_client() -> None:
    """Puts Talea under ``import prometheus_client``, for libraries that import that.

    A RuntimeError if ``prometheus_client`` itself is imported already: metrics would be in both.
    """
    from talea_metrics._install import install

    install()


def __getattr__(name: str) -> Any:
    # Modules that take long to import and that few programs use.
    if name in LAZY:
        from talea_metrics import exposition

        return getattr(exposition, name)
    if name in ("asgi", "multiprocess", "typed", "wsgi"):
        return import_module(f"talea_metrics.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
