"""Which names are accepted: any text, or only letters, digits and underscores as before Prometheus 3."""

import os
import re
from collections.abc import Iterable

_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_legacy = os.environ.get("PROMETHEUS_LEGACY_NAME_VALIDATION", "").lower() in ("true", "1", "t")


def get_legacy_validation() -> bool:
    """Whether names are only letters, digits and underscores."""
    return _legacy


def enable_legacy_validation() -> None:
    """Refuses names with other characters from now on."""
    global _legacy
    _legacy = True


def disable_legacy_validation() -> None:
    """Accepts names with any characters, which is the default."""
    global _legacy
    _legacy = False


def check_names(metric: str, labels: Iterable[str]) -> None:
    """A ValueError if legacy validation is on and a name has other characters."""
    if not _legacy:
        return
    wrong = [] if _METRIC.fullmatch(metric) else [metric]
    wrong += [label for label in labels if not _LABEL.fullmatch(label)]
    if wrong:
        raise ValueError(f"the names {wrong} have other characters than letters, digits and underscores")
