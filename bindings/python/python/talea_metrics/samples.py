"""The parts of a sample of a page, by the names of ``prometheus_client.samples``."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional, Union


class Timestamp:
    """Seconds and nanoseconds since 1970."""

    def __init__(self, sec: float, nsec: float) -> None:
        if nsec < 0 or nsec >= 1e9:
            raise ValueError(f"nanoseconds are 0 to 999,999,999, not {nsec}")
        self.sec: int = int(sec)
        self.nsec: int = -int(nsec) if sec < 0 else int(nsec)

    def __str__(self) -> str:
        return f"{self.sec}.{abs(self.nsec):09d}"

    def __repr__(self) -> str:
        return f"Timestamp({self.sec}, {self.nsec})"

    def __float__(self) -> float:
        return self.sec + self.nsec / 1e9

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and (self.sec, self.nsec) == (other.sec, other.nsec)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.sec, self.nsec))

    def __gt__(self, other: "Timestamp") -> bool:
        return (self.sec, self.nsec) > (other.sec, other.nsec)

    def __lt__(self, other: "Timestamp") -> bool:
        return (self.sec, self.nsec) < (other.sec, other.nsec)


class BucketSpan(NamedTuple):
    """A run of buckets of a native histogram."""

    offset: int
    length: int


class NativeHistogram(NamedTuple):
    """A native histogram, as a custom collector may have one."""

    count_value: float
    sum_value: float
    schema: int
    zero_threshold: float
    zero_count: float
    pos_spans: Optional[Sequence[BucketSpan]] = None
    neg_spans: Optional[Sequence[BucketSpan]] = None
    pos_deltas: Optional[Sequence[int]] = None
    neg_deltas: Optional[Sequence[int]] = None


class Exemplar(NamedTuple):
    """One of the things that were counted, with labels that identify it."""

    labels: Mapping[str, str]
    value: float
    timestamp: Optional[Union[float, Timestamp]] = None


class Sample(NamedTuple):
    """A line of a page."""

    name: str
    labels: Mapping[str, str]
    value: float
    timestamp: Optional[Union[float, Timestamp]] = None
    exemplar: Optional[Exemplar] = None
    native_histogram: Optional[NativeHistogram] = None
