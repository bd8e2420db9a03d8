"""The part of ``prometheus_client.decorator`` that tests use."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Optional


class ArgSpec(NamedTuple):
    """The parameters of a function."""

    args: list[str]
    varargs: Optional[str]
    varkw: Optional[str]
    defaults: Optional[tuple[Any, ...]]


def getargspec(function: Callable[..., Any]) -> ArgSpec:
    """The parameters of a function, also of one that is measured or counted."""
    return ArgSpec(*inspect.getfullargspec(inspect.unwrap(function))[:4])
