"""The handler, by the official client's name of the module."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from talea_metrics._serve import respond
from talea_metrics.registry import REGISTRY


def make_aiohttp_handler(
    registry: Any = REGISTRY, disable_compression: bool = False
) -> Callable[[Any], Awaitable[Any]]:
    """A handler of aiohttp that answers with the page of a registry."""
    response: Callable[..., Any] = import_module("aiohttp.web").Response

    async def handler(request: Any) -> Any:
        status, headers, body = respond(
            registry,
            request.method,
            request.query_string,
            ",".join(request.headers.getall("Accept", [])),
            ",".join(request.headers.getall("Accept-Encoding", [])),
            not disable_compression,
        )
        return response(status=int(status[:3]), headers=headers, body=body)

    return handler
