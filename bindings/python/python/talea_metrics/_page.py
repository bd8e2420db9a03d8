"""Pages: the values of a registry as bytes."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from talea_metrics import _encode
from talea_metrics._talea import accepts_gzip, negotiate
from talea_metrics._workers import warn_of_workers
from talea_metrics.registry import REGISTRY, CollectorRegistry, refresh

CONTENT_TYPE_PLAIN_0_0_4 = "text/plain; version=0.0.4; charset=utf-8"
CONTENT_TYPE_PLAIN_1_0_0 = "text/plain; version=1.0.0; charset=utf-8"
CONTENT_TYPE_LATEST = CONTENT_TYPE_PLAIN_1_0_0


def page(
    registry: Any, accept: str = "", names: Optional[Sequence[str]] = None
) -> tuple[bytes, str]:
    """The page of a registry in the format that an ``Accept`` header asks for, and its content type.

    ``names`` restricts it to samples of these names. Any object with ``collect`` is a registry.
    """
    regions: list[tuple[Any, Optional[list[str]]]] = []
    custom: list[Any] = []
    target: Iterable[Any] = ()
    if isinstance(registry, CollectorRegistry) and _collects_itself(registry):
        regions, custom = _restricted(registry._regions(), names), registry._others()
        with registry._lock:
            target = [registry._target_info_metric()] if registry._target_info else ()
    else:
        custom = [registry]
    for region, _ in regions:
        refresh(region)
        if region.is_of_process():
            warn_of_workers()
    is_native = len(regions) == 1 and not custom and not target
    if is_native:
        region, own = regions[0]
        native, content_type = region.render(accept, True, own or [])
        return bytes(native), content_type
    families = [*target, *(family for one in custom for family in one.collect())]
    if names:
        restricted = (family._restricted_metric(names) for family in families)
        families = [family for family in restricted if family]
    rendered = [region.render(accept, False, own or []) for region, own in regions]
    if not rendered:
        content_type = negotiate(accept)
    else:
        content_type = rendered[0][1]
    escaping = content_type.partition("escaping=")[2] or "underscores"
    taken = registry._names_to_collectors if rendered else ()
    if not content_type.startswith("application/openmetrics-text"):
        text = _encode.text(families, escaping, taken)
        return b"".join([*(part for part, _ in rendered), text.encode()]), content_type
    end = b"# EOF\n"
    parts = [part[: -len(end)] for part, _ in rendered]
    return b"".join([*parts, _encode.openmetrics(families, escaping, taken).encode(), end]), content_type


def _collects_itself(registry: CollectorRegistry) -> bool:
    """Whether a registry has the `collect` of its class here: a subclass may show something else."""
    return getattr(registry.collect, "__func__", None) is CollectorRegistry.collect


def _restricted(
    regions: Iterable[tuple[Any, Optional[list[str]]]], names: Optional[Sequence[str]]
) -> list[tuple[Any, Optional[list[str]]]]:
    """The regions with the names of samples that are wanted of each; None for all."""
    if not names:
        return list(regions)
    wanted = [
        (region, [name for name in names if own is None or name in own]) for region, own in regions
    ]
    return [(region, own) for region, own in wanted if own]


def _bake_output(
    registry: Any,
    accept_header: str,
    accept_encoding_header: str,
    params: Mapping[str, Sequence[str]],
    disable_compression: bool,
) -> tuple[str, list[tuple[str, str]], bytes]:
    """Status, headers and body of an answer with a page: the headers that the official client sends."""
    body, content_type = page(registry, accept_header or "", params.get("name[]"))
    headers = [("Content-Type", content_type)]
    if not disable_compression and accepts_gzip(accept_encoding_header or ""):
        import gzip

        body = gzip.compress(body, 1)
        headers.append(("Content-Encoding", "gzip"))
    return "200 OK", headers, body


def generate_latest(registry: Any = REGISTRY, escaping: str = "underscores") -> bytes:
    """The page of a registry in Prometheus' text format.

    ``escaping`` says how names with other characters than letters, digits and underscores are shown:
    ``underscores``, ``allow-utf-8``, ``dots`` or ``values``.
    """
    version = "0.0.4" if escaping == "underscores" else "1.0.0"
    return page(registry, f"text/plain;version={version};escaping={escaping}")[0]


def choose_encoder(accept_header: Optional[str]) -> tuple[Any, str]:
    """A function from a registry to a page in the format that the header asks for, and its content type."""
    accept = accept_header or ""
    return (lambda registry: page(registry, accept)[0]), negotiate(accept)


def write_to_textfile(
    path: str, registry: Any, escaping: str = "allow-utf-8", tmpdir: Optional[str] = None
) -> None:
    """Writes the page to a file, which is replaced at once: for the node exporter's textfile collector."""
    import tempfile

    folder = tmpdir or os.path.dirname(path) or "."
    handle, temporary = tempfile.mkstemp(prefix=os.path.basename(path), dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(generate_latest(registry, escaping))
        # As a file that `open` makes: others may read it.
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
