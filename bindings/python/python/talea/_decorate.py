"""Functions whose calls are measured or counted, also those that are awaited."""

import functools
import inspect
import time


def decorate(block, function):
    """Wraps a function, so that each call runs within the block."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def within(*args, **kwargs):
            with block:
                return await function(*args, **kwargs)
    else:

        @functools.wraps(function)
        def within(*args, **kwargs):
            with block:
                return function(*args, **kwargs)

    return within


def timed(timer, function):
    """Wraps a function, so that each call is measured. Calls may overlap."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def measured(*args, **kwargs):
            began = time.perf_counter()
            try:
                return await function(*args, **kwargs)
            finally:
                timer._observe(time.perf_counter() - began)
    else:

        @functools.wraps(function)
        def measured(*args, **kwargs):
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                timer._observe(time.perf_counter() - began)

    return measured
