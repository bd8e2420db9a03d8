"""The contents of ``prometheus_client.utils``."""

from talea_metrics._encode import number as floatToGoString

__all__ = ["INF", "floatToGoString"]

INF = float("inf")
