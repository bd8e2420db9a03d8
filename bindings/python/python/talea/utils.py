"""The contents of ``prometheus_client.utils``."""

from talea._encode import number as floatToGoString

__all__ = ["INF", "floatToGoString"]

INF = float("inf")
