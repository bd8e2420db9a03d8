"""The names of the official client's module: pages of ``_page``, servers of ``_serve``, pushes of ``_push``."""

from typing import TYPE_CHECKING, Any

from talea_metrics._page import CONTENT_TYPE_LATEST as CONTENT_TYPE_LATEST
from talea_metrics._page import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE_PLAIN_0_0_4
from talea_metrics._page import CONTENT_TYPE_PLAIN_1_0_0 as CONTENT_TYPE_PLAIN_1_0_0
from talea_metrics._page import _bake_output as _bake_output
from talea_metrics._page import choose_encoder as choose_encoder
from talea_metrics._page import generate_latest as generate_latest
from talea_metrics._page import page as page
from talea_metrics._page import write_to_textfile as write_to_textfile

if TYPE_CHECKING:
    from talea_metrics._push import basic_auth_handler as basic_auth_handler
    from talea_metrics._push import default_handler as default_handler
    from talea_metrics._push import delete_from_gateway as delete_from_gateway
    from talea_metrics._push import instance_ip_grouping_key as instance_ip_grouping_key
    from talea_metrics._push import passthrough_redirect_handler as passthrough_redirect_handler
    from talea_metrics._push import push_to_gateway as push_to_gateway
    from talea_metrics._push import pushadd_to_gateway as pushadd_to_gateway
    from talea_metrics._push import tls_auth_handler as tls_auth_handler
    from talea_metrics._serve import MetricsHandler as MetricsHandler
    from talea_metrics._serve import ThreadingWSGIServer as ThreadingWSGIServer
    from talea_metrics._serve import make_asgi_app as make_asgi_app
    from talea_metrics._serve import make_wsgi_app as make_wsgi_app
    from talea_metrics._serve import start_http_server as start_http_server
    from talea_metrics._serve import start_wsgi_server as start_wsgi_server

_SERVE = {
    "MetricsHandler",
    "ThreadingWSGIServer",
    "make_asgi_app",
    "make_wsgi_app",
    "start_http_server",
    "start_wsgi_server",
}
_PUSH = {
    "basic_auth_handler",
    "default_handler",
    "delete_from_gateway",
    "instance_ip_grouping_key",
    "passthrough_redirect_handler",
    "push_to_gateway",
    "pushadd_to_gateway",
    "tls_auth_handler",
}
LAZY = _SERVE | _PUSH


def __getattr__(name: str) -> Any:
    # Those modules take ten times as long to import as this one.
    if name in _SERVE:
        from talea_metrics import _serve

        return getattr(_serve, name)
    if name in _PUSH:
        from talea_metrics import _push

        return getattr(_push, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
