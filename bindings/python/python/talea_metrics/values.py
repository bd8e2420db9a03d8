"""The classes of values, for programs for ``prometheus_client``'s multi-process mode that choose one.

Talea's values are in a region, and its metrics use none of these classes.
"""

import os
from collections.abc import Callable
from threading import Lock
from typing import Any, Optional


class MutexValue:
    """A number with a lock."""

    _multiprocess = False

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        self._value = 0.0
        self._exemplar: Optional[Any] = None
        self._lock = Lock()

    def inc(self, amount: float) -> None:
        """Adds an amount."""
        with self._lock:
            self._value += amount

    def set(self, value: float, timestamp: Optional[float] = None) -> None:
        """Sets the number."""
        with self._lock:
            self._value = value

    def set_exemplar(self, exemplar: Any) -> None:
        """Sets the exemplar."""
        with self._lock:
            self._exemplar = exemplar

    def get(self) -> float:
        """The number."""
        with self._lock:
            return self._value

    def get_exemplar(self) -> Optional[Any]:
        """The exemplar."""
        with self._lock:
            return self._exemplar


def MultiProcessValue(process_identifier: Callable[[], Any] = os.getpid) -> type[MutexValue]:
    """A class of values. Talea sees by itself which process has a value, so the identifier is not asked for."""
    return MutexValue


def get_value_class() -> type[MutexValue]:
    """The class of values."""
    return ValueClass


ValueClass = MutexValue
