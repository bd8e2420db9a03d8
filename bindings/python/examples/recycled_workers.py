"""Workers that are replaced for weeks, in a small /dev/shm: the failure that has ended real installations.

Each worker counts, and ends; as gunicorn's do with ``--max-requests``. The files of prometheus_client's
multi-process mode become more with each of them, until a write ends a worker with SIGBUS, and from then on
every one. Talea's region stays as it was at the tenth. At last the folder is filled by somebody else, and
workers go on. As root, in a folder of 16 MiB that ends with the command:

    unshare --mount sh -c 'mount -t tmpfs -o size=16m none /mnt && python recycled_workers.py talea /mnt'
    unshare --mount sh -c \\
        'mount -t tmpfs -o size=16m none /mnt && python recycled_workers.py prometheus_client /mnt'
"""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any


def used(folder: Path) -> int:
    """The bytes that the files of a folder take."""
    return sum(file.stat().st_blocks * 512 for file in folder.iterdir() if file.name != "filler")


def fill(folder: Path) -> None:
    """Writes until there is no room."""
    with open(folder / "filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass


def work(metrics: Any, orders: Any, times: Any, level: Any, n: int) -> None:
    """The counts of a worker in its life."""
    for method in ["card", "cash", f"coupon {n % 10}"]:
        orders.labels(method).inc()
    times.observe(0.01 * (n % 100))
    level.set(n)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("library", choices=["talea", "prometheus_client"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=20_000)
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    metrics: Any
    if arguments.library == "talea":
        os.environ["TALEA_REGION"] = str(folder / "shop.talea")
        import talea_metrics as metrics
    else:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        import prometheus_client as metrics
    orders = metrics.Counter("shop_orders", "Orders accepted.", ["method"])
    times = metrics.Histogram("shop_payment_seconds", "Time to pay.")
    level = metrics.Gauge("shop_level", "Level.", multiprocess_mode="livesum")

    def run(n: int) -> int:
        """Runs a worker to its end; its wait status."""
        child = os.fork()
        if child == 0:
            work(metrics, orders, times, level, n)
            os._exit(0)
        return os.waitpid(child, 0)[1]

    began = time.monotonic()
    tenth = 0
    for n in range(1, arguments.workers + 1):
        status = run(n)
        if status:
            killed = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "an error"
            print(f"worker {n:,} ended by {killed}; the files take {used(folder):,} bytes")
            return 1
        if n == 10:
            tenth = used(folder)
    took = time.monotonic() - began
    print(f"{arguments.workers:,} workers in {took:.0f} s")
    print(f"the files took {tenth:,} bytes at the tenth, and take {used(folder):,} now")
    fill(folder)
    print(f"a full folder: {'workers go on' if run(1) == 0 else 'a worker failed'}")
    if arguments.library == "talea":
        counted = metrics.REGISTRY.get_sample_value("shop_orders_total", {"method": "card"})
        print(f"{counted:,.0f} orders by card are counted")
        return 0 if (used(folder), counted) == (tenth, arguments.workers + 1) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
