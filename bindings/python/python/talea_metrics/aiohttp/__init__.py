"""For aiohttp: a handler that answers with a page."""

from talea_metrics.aiohttp.exposition import make_aiohttp_handler

__all__ = ["make_aiohttp_handler"]
