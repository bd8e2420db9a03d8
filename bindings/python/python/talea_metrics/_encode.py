"""The text of custom collectors' families. Metrics of a region are written by the extension module."""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from talea_metrics._talea import escape_name
from talea_metrics.metrics_core import Metric
from talea_metrics.samples import Sample

_PLAIN_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_PLAIN_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# OpenMetrics has these types alone; text 0.0.4 calls the others so.
_TEXT_TYPES = {
    "info": "gauge",
    "stateset": "gauge",
    "gaugehistogram": "histogram",
    "unknown": "untyped",
}
_TEXT_ENDINGS = {"counter": "_total", "info": "_info"}
_OPENMETRICS_ALONE = ("_created", "_gsum", "_gcount")


def number(value: float) -> str:
    """A number as it stands on a page: ``1.0``, ``1e+06``, ``+Inf``, ``NaN``."""
    text = repr(float(value))
    whole, _, fraction = text.partition(".")
    # As Go writes floats, with an exponent from a million on.
    if len(whole.lstrip("-")) > 6 and whole.lstrip("-").isdecimal() and "e" not in text:
        sign, digits = text[: text.startswith("-")], whole.lstrip("-")
        mantissa = f"{digits[0]}.{digits[1:]}{fraction}".rstrip("0").rstrip(".")
        return f"{sign}{mantissa}e+{len(digits) - 1:02}"
    return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(text, text)


def _value(text: object) -> str:
    return str(text).replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _help(text: str) -> str:
    # A line of a text must not end with a carriage return.
    return text.rstrip("\r").replace("\\", r"\\").replace("\n", r"\n")


def _milliseconds(timestamp: Any) -> int:
    if hasattr(timestamp, "nsec"):
        # A float has not all digits of it. Those below a millisecond are cut off.
        return (int(timestamp.sec) * 10**9 + int(timestamp.nsec)) // 10**6
    # The float nearest to a number of milliseconds can be below it.
    return round(float(timestamp) * 1000)


def _may_have_an_exemplar(family: Metric, sample: Sample) -> bool:
    if family.type == "counter":
        return sample.name.endswith("_total")
    return family.type in ("histogram", "gaugehistogram") and sample.name.endswith("_bucket")


def _classic(family: Metric) -> list[Sample]:
    """The samples that a text format has: it has no native histograms."""
    return [one for one in family.samples if getattr(one, "native_histogram", None) is None]


class _Names:
    """How the names of a page are shown. Those that are not plain are escaped, and none becomes that of another."""

    def __init__(self, escaping: str, families: Iterable[Metric], taken: Iterable[str]) -> None:
        self._escaping = escaping
        names = {name for family in families for name in (family.name, *(sample.name for sample in family.samples))}
        self._taken = {name for name in (*names, *taken) if _PLAIN_METRIC.fullmatch(name)}
        self._shown: dict[str, str] = {}
        for name in sorted(names):
            self.family(name)

    def _escaped(self, name: str, is_label: bool, taken: set[str]) -> str:
        if self._escaping == "allow-utf-8":
            return f'"{_value(name)}"'
        shown = escape_name(name, self._escaping, is_label)
        if shown in taken or (is_label and shown.startswith("__")):
            shown = escape_name(name, "values", is_label)
        taken.add(shown)
        return shown

    def family(self, name: str) -> str:
        if _PLAIN_METRIC.fullmatch(name):
            return name
        if name not in self._shown:
            self._shown[name] = self._escaped(name, False, self._taken)
        return self._shown[name]

    def labels(self, labels: Iterable[tuple[str, object]]) -> list[str]:
        labels = sorted(labels)
        taken = {name for name, _ in labels if _PLAIN_LABEL.fullmatch(name)}
        shown = []
        for name, value in labels:
            if name in ("", "__name__"):
                raise ValueError(f"Prometheus refuses a page with a label called {name!r}; give it another name")
            own = name if name in taken else self._escaped(name, True, taken)
            shown.append(f'{own}="{_value(value)}"')
        return shown

    def series(self, sample: Sample) -> str:
        name = self.family(sample.name)
        labels = self.labels(sample.labels.items())
        if name.startswith('"'):
            return f"{{{','.join([name, *labels])}}}"
        return f"{name}{{{','.join(labels)}}}" if labels else name


def _each(families: Iterable[Metric], write: Callable[[Metric], None]) -> None:
    for family in families:
        try:
            write(family)
        except Exception as error:
            # A custom collector gave it: the error shows which family is wrong.
            error.args = (*error.args, family)
            raise


def text(families: Collection[Metric], escaping: str, taken: Iterable[str] = ()) -> str:
    """The text format, as Prometheus' version 0.0.4 has it. Other families of the page have the names ``taken``."""
    names = _Names(escaping, families, taken)
    lines: list[str] = []

    def line(sample: Sample) -> str:
        time = "" if sample.timestamp is None else f" {_milliseconds(sample.timestamp)}"
        return f"{names.series(sample)} {number(sample.value)}{time}"

    def head(name: str, documentation: str, kind: str) -> None:
        lines.append(f"# HELP {names.family(name)} {_help(documentation)}")
        lines.append(f"# TYPE {names.family(name)} {kind}")

    def write(family: Metric) -> None:
        kind = _TEXT_TYPES.get(family.type, family.type)
        head(family.name + _TEXT_ENDINGS.get(family.type, ""), family.documentation, kind)
        apart: dict[str, list[str]] = {}
        for sample in _classic(family):
            ending = sample.name[len(family.name) :]
            if ending in _OPENMETRICS_ALONE and sample.name.startswith(family.name):
                apart.setdefault(ending, []).append(line(sample))
            else:
                lines.append(line(sample))
        for ending in sorted(apart):
            head(family.name + ending, family.documentation, "gauge")
            lines.extend(apart[ending])

    _each(families, write)
    return "".join(f"{line}\n" for line in lines)


def openmetrics(families: Collection[Metric], escaping: str, taken: Iterable[str] = ()) -> str:
    """OpenMetrics, without the line that ends a page. Other families of the page have the names ``taken``."""
    names = _Names(escaping, families, taken)
    lines: list[str] = []

    def exemplar(of: Any) -> str:
        # A custom collector may give labels alone, or what the official client's Exemplar has.
        labels, *rest = of if isinstance(of, tuple) else (of, 1.0)
        value = number(rest[0])
        time = f" {rest[1]}" if len(rest) > 1 and rest[1] is not None else ""
        return f" # {{{','.join(names.labels(labels.items()))}}} {value}{time}"

    def write(family: Metric) -> None:
        name = names.family(family.name)
        documentation = _help(family.documentation).replace('"', r"\"")
        lines.append(f"# HELP {name} {documentation}")
        lines.append(f"# TYPE {name} {family.type}")
        if family.unit:
            lines.append(f"# UNIT {name} {family.unit}")
        for sample in _classic(family):
            time = "" if sample.timestamp is None else f" {sample.timestamp}"
            line = f"{names.series(sample)} {number(sample.value)}{time}"
            if sample.exemplar and not _may_have_an_exemplar(family, sample):
                raise ValueError(
                    f"Metric {family.name} has exemplars, but is not a histogram bucket or counter"
                )
            lines.append(line + (exemplar(sample.exemplar) if sample.exemplar else ""))

    _each(families, write)
    return "".join(f"{line}\n" for line in lines)
