"""What ``prometheus_client.utils`` has."""

from talea._encode import number as floatToGoString

__all__ = ["INF", "floatToGoString"]

INF = float("inf")
