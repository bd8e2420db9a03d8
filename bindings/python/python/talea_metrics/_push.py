"""Pushes to a Prometheus Pushgateway."""

import base64
import gzip
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Optional, Union
from urllib.parse import quote_plus
from urllib.request import BaseHandler, HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from talea_metrics._page import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from talea_metrics.registry import REGISTRY

Headers = list[tuple[str, str]]
Handler = Callable[..., Callable[[], None]]
Handlers = Union[BaseHandler, type[BaseHandler]]


def _request(
    url: str, method: str, timeout: Optional[float], headers: Headers, data: bytes, *handlers: Handlers
) -> Callable[[], None]:
    def send() -> None:
        request = Request(url, data=data, headers=dict(headers), method=method)
        with build_opener(*handlers).open(request, timeout=timeout) as response:
            if response.status >= 400:
                raise OSError(f"the push to {url} was answered with {response.status} {response.reason}")

    return send


def default_handler(
    url: str, method: str, timeout: Optional[float], headers: Headers, data: bytes
) -> Callable[[], None]:
    """Sends as it is asked. An OSError says that it failed."""
    return _request(url, method, timeout, headers, data, HTTPHandler)


class _Redirects(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request:
        return Request(newurl, data=req.data, headers=dict(req.headers), method=req.get_method())


def passthrough_redirect_handler(
    url: str, method: str, timeout: Optional[float], headers: Headers, data: bytes
) -> Callable[[], None]:
    """Follows redirects with the same method and body: for gateways that one trusts to redirect."""
    return _request(url, method, timeout, headers, data, _Redirects)


def basic_auth_handler(
    url: str,
    method: str,
    timeout: Optional[float],
    headers: Headers,
    data: bytes,
    username: Optional[str] = None,
    password: Optional[str] = None,
) -> Callable[[], None]:
    """Sends with a user's name and password."""
    headers = list(headers)
    if username is not None and password is not None:
        token = base64.b64encode(f"{username}:{password}".encode()).decode()
        headers.append(("Authorization", f"Basic {token}"))
    return default_handler(url, method, timeout, headers, data)


def tls_auth_handler(
    url: str,
    method: str,
    timeout: Optional[float],
    headers: Headers,
    data: bytes,
    certfile: str,
    keyfile: str,
    cafile: Optional[str] = None,
    protocol: int = ssl.PROTOCOL_TLS_CLIENT,
    insecure_skip_verify: bool = False,
) -> Callable[[], None]:
    """Sends over TLS with a certificate of the client."""
    context = ssl.SSLContext(protocol)
    if cafile is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cafile)
    if insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(certfile, keyfile)
    return _request(url, method, timeout, headers, data, HTTPSHandler(context=context))


def push_to_gateway(
    gateway: str,
    job: str,
    registry: Any,
    grouping_key: Optional[Mapping[str, Any]] = None,
    timeout: Optional[float] = 30,
    handler: Handler = default_handler,
    compression: Optional[str] = None,
) -> None:
    """Replaces all metrics of a job and grouping key. ``timeout`` is in seconds; ``compression`` is
    ``"gzip"`` or None."""
    _use_gateway("PUT", gateway, job, registry, grouping_key, timeout, handler, compression)


def pushadd_to_gateway(
    gateway: str,
    job: str,
    registry: Any,
    grouping_key: Optional[Mapping[str, Any]] = None,
    timeout: Optional[float] = 30,
    handler: Handler = default_handler,
    compression: Optional[str] = None,
) -> None:
    """Replaces metrics of the same names, job and grouping key."""
    _use_gateway("POST", gateway, job, registry, grouping_key, timeout, handler, compression)


def delete_from_gateway(
    gateway: str,
    job: str,
    grouping_key: Optional[Mapping[str, Any]] = None,
    timeout: Optional[float] = 30,
    handler: Handler = default_handler,
) -> None:
    """Deletes all metrics of a job and grouping key."""
    _use_gateway("DELETE", gateway, job, None, grouping_key, timeout, handler, None)


def _use_gateway(
    method: str,
    gateway: str,
    job: str,
    registry: Any,
    grouping_key: Optional[Mapping[str, Any]],
    timeout: Optional[float],
    handler: Handler,
    compression: Optional[str],
) -> None:
    if not gateway.startswith(("http://", "https://")):
        gateway = f"http://{gateway}"
    keys = [("job", job), *sorted((str(k), str(v)) for k, v in (grouping_key or {}).items())]
    path = "/".join(f"{name}/{value}" for name, value in (_escaped(*key) for key in keys))
    headers: Headers = [("Content-Type", CONTENT_TYPE_PLAIN_0_0_4)]
    data = b""
    if method != "DELETE":
        data = generate_latest(REGISTRY if registry is None else registry)
        if compression == "gzip":
            data = gzip.compress(data)
            headers.append(("Content-Encoding", "gzip"))
        elif compression is not None:
            raise ValueError(f"Unsupported compression type: {compression!r}; expected 'gzip' or None")
    url = f"{gateway.rstrip('/')}/metrics/{path}"
    handler(url=url, method=method, timeout=timeout, headers=headers, data=data)()


def _escaped(name: str, value: str) -> tuple[str, str]:
    """Values that a path cannot have are in base64. Source: the Pushgateway's README, "URL"."""
    if not value:
        return f"{name}@base64", "="
    if "/" in value or " " in value:
        return f"{name}@base64", base64.urlsafe_b64encode(value.encode()).decode()
    return name, quote_plus(value)


def instance_ip_grouping_key() -> dict[str, Any]:
    """A grouping key with the address of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("localhost", 0))
        return {"instance": sock.getsockname()[0]}
