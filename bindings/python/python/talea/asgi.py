"""The ASGI application of a page, where ``prometheus_client`` has it."""

from talea._serve import make_asgi_app as make_asgi_app
