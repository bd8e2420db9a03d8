"""Functions whose calls are measured or counted, also those that are awaited."""

import functools
import inspect
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from talea_metrics._talea import Timer


def decorate(block: "AbstractContextManager[Any]", function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function, so that each call runs within the block."""
    if _is_async(function):

        @functools.wraps(function)
        async def within(*args: Any, **kwargs: Any) -> Any:
            with block:
                return await function(*args, **kwargs)
    else:

        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with block:
                result = function(*args, **kwargs)
            return _awaited_within(block, result) if inspect.iscoroutine(result) else result

    return within


async def _awaited_within(
    block: "AbstractContextManager[Any]", coroutine: Coroutine[Any, Any, Any]
) -> Any:
    with block:
        return await coroutine


def timed(timer: "Timer", function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function, so that each call is measured. Calls may overlap."""
    if _is_async(function):

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
            result = None
            try:
                result = function(*args, **kwargs)
            finally:
                if not inspect.iscoroutine(result):
                    timer._observe(time.perf_counter() - began)
            if inspect.iscoroutine(result):
                return _awaited(timer, result, time.perf_counter() - began)
            return result

    return measured


async def _awaited(timer: "Timer", coroutine: Coroutine[Any, Any, Any], before: float) -> Any:
    """What the coroutine returns. Its call took some seconds before."""
    began = time.perf_counter()
    try:
        return await coroutine
    finally:
        timer._observe(before + time.perf_counter() - began)


def _is_async(function: Callable[..., Any]) -> bool:
    """Whether calls return a coroutine: of an `async def`, also a `__call__`, as asgiref's `sync_to_async` has."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )
