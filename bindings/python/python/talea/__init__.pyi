from talea._talea import CollectorRegistry as CollectorRegistry
from talea._talea import Counter as Counter
from talea._talea import Gauge as Gauge
from talea._talea import Histogram as Histogram
from talea._talea import Summary as Summary

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

CONTENT_TYPE_LATEST: str
REGISTRY: CollectorRegistry

def generate_latest(registry: CollectorRegistry | None = None) -> bytes:
    """The page of a registry, by default of the default one, in Prometheus' text format."""
