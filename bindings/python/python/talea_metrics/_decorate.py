"""Functions whose calls are measured or counted, also those that are awaited."""

import functools
import inspect
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from talea_metrics._talea import Timer


def decorate(block: "AbstractContextManager[Any]", function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function, so that each call runs within the block."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def within(*args: Any, **kwargs: Any) -> Any:
            with block:
                return await function(*args, **kwargs)
    else:

        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with block:
                return function(*args, **kwargs)

    return within


def timed(timer: "Timer", function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function, so that each call is measured. Calls may overlap."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def measured(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return await function(*args, **kwargs)
            finally:
                timer._observe(time.perf_counter() - began)
    else:

        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                timer._observe(time.perf_counter() - began)

    return measured
