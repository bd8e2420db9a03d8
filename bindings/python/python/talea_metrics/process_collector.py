"""The resources that this process uses: the standard metrics of Prometheus' clients, read from /proc."""

import os
from collections.abc import Callable, Iterable
from typing import Optional, Union

from talea_metrics.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from talea_metrics.registry import REGISTRY, CollectorRegistry


class ProcessCollector:
    """CPU time, memory, descriptors and start of a process; nothing where there is no /proc.

    ``pid`` returns the process, by default the one that asks.
    """

    def __init__(
        self,
        namespace: str = "",
        pid: Callable[[], Union[int, str]] = lambda: "self",
        proc: str = "/proc",
        registry: Optional[CollectorRegistry] = REGISTRY,
    ) -> None:
        self._prefix = f"{namespace}_process_" if namespace else "process_"
        self._pid = pid
        self._proc = proc
        if registry is not None:
            registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """The families with their samples."""
        folder = os.path.join(self._proc, str(self._pid()).strip())
        prefix = self._prefix
        try:
            with open(os.path.join(self._proc, "stat"), "rb") as file:
                booted = next(float(line.split()[1]) for line in file if line.startswith(b"btime "))
            with open(os.path.join(folder, "stat"), "rb") as file:
                # The second field is a name in brackets, which may contain anything.
                parts = file.read().rpartition(b")")[2].split()
        except (OSError, StopIteration):
            return
        ticks = os.sysconf("SC_CLK_TCK")
        pages = os.sysconf("SC_PAGE_SIZE")
        yield GaugeMetricFamily(
            f"{prefix}virtual_memory_bytes", "Virtual memory size in bytes.", float(parts[20])
        )
        yield GaugeMetricFamily(
            f"{prefix}resident_memory_bytes", "Resident memory size in bytes.", float(parts[21]) * pages
        )
        yield GaugeMetricFamily(
            f"{prefix}start_time_seconds",
            "Start time of the process since unix epoch in seconds.",
            booted + float(parts[19]) / ticks,
        )
        yield CounterMetricFamily(
            f"{prefix}cpu_seconds_total",
            "Total user and system CPU time spent in seconds.",
            (float(parts[11]) + float(parts[12])) / ticks,
        )
        try:
            with open(os.path.join(folder, "limits"), "rb") as file:
                limit = next(line.split()[3] for line in file if line.startswith(b"Max open files"))
            descriptors = len(os.listdir(os.path.join(folder, "fd")))
        except (OSError, StopIteration):
            return
        yield GaugeMetricFamily(
            f"{prefix}open_fds", "Number of open file descriptors.", float(descriptors)
        )
        most = float("inf") if limit == b"unlimited" else float(limit)
        yield GaugeMetricFamily(f"{prefix}max_fds", "Maximum number of open file descriptors.", most)


PROCESS_COLLECTOR = ProcessCollector(registry=None)
REGISTRY._register_own(PROCESS_COLLECTOR)
