"""Talea under the name ``prometheus_client``."""

import importlib
import sys

_NAME = "prometheus_client"
_MODULES = (
    "aiohttp",
    "aiohttp.exposition",
    "asgi",
    "context_managers",
    "core",
    "decorator",
    "exposition",
    "gc_collector",
    "metrics",
    "metrics_core",
    "multiprocess",
    "openmetrics",
    "openmetrics.exposition",
    "openmetrics.parser",
    "parser",
    "platform_collector",
    "process_collector",
    "registry",
    "samples",
    "utils",
    "validation",
    "values",
)


def install() -> None:
    """See ``talea_metrics.install_as_prometheus_client``."""
    own = importlib.import_module("talea_metrics")
    present = sys.modules.get(_NAME)
    if present is own:
        return
    if present is not None:
        raise RuntimeError(
            f"{_NAME} is imported already, from {getattr(present, '__file__', 'somewhere')}; "
            "call talea_metrics.install_as_prometheus_client() before anything imports it"
        )
    sys.modules[_NAME] = own
    for module in _MODULES:
        sys.modules[f"{_NAME}.{module}"] = importlib.import_module(f"{own.__name__}.{module}")
