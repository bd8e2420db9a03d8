"""The classes of context managers, by the names of the official client. Methods of metrics make them too."""

from abc import ABCMeta
from typing import Any

from talea_metrics import _talea


class ExceptionCounter(metaclass=ABCMeta):
    """What ``count_exceptions`` of a counter returns."""

    def __new__(cls, counter: Any, exception: Any) -> Any:
        return counter.count_exceptions(exception)


class InprogressTracker(metaclass=ABCMeta):
    """What ``track_inprogress`` of a gauge returns."""

    def __new__(cls, gauge: Any) -> Any:
        return gauge.track_inprogress()


class Timer(metaclass=ABCMeta):
    """What ``time`` of a metric returns."""

    def __new__(cls, metric: Any, callback_name: str) -> Any:
        return metric.time()


ExceptionCounter.register(_talea.CountedExceptions)
InprogressTracker.register(_talea.InProgress)
Timer.register(_talea.Timer)
