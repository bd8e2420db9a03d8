"""Lines that a program has, checked by mypy and pyright: it is not run."""

import asyncio
from dataclasses import dataclass
from typing import Literal

from talea_metrics import REGISTRY, CollectorRegistry, Counter, Enum, Gauge, Histogram, Info, Summary
from talea_metrics import generate_latest, start_http_server
from talea_metrics.typed import labelled

orders = Counter("orders", "Orders.", ["method"], namespace="shop", registry=CollectorRegistry())
level = Gauge("level", "Level.", multiprocess_mode="livesum", registry=REGISTRY)
times = Histogram("times_seconds", "Times.", ("method",), buckets=(0.1, 1, 10))
sizes = Summary("sizes_bytes", "Sizes.", unit="bytes", quantiles=[0.5])


@times.labels("card").time()
@orders.labels("card").count_exceptions((KeyError, OSError))
@level.track_inprogress()
async def pay(amount: int) -> str:
    with times.labels(method="cash").time():
        sizes.observe(amount)
    return str(amount)


text: str = asyncio.run(pay(3))
page: bytes = generate_latest()
value: float | None = REGISTRY.get_sample_value("shop_orders_total", {"method": "card"})
orders.labels("card").inc("1")  # type: ignore[arg-type]
Gauge("other", "O.", multiprocess_mode="every")  # type: ignore[arg-type]
Enum("circuit", "C.", ["name"], states=["open", "closed"]).labels("payment").state("open")
Info("build", "B.").info({"version": "1"})
level.set_function(lambda: 3)
orders.labels("card").inc(exemplar={"trace_id": "1"})
server, thread = start_http_server(0, registry=REGISTRY)
server.shutdown()


@dataclass
class Order:
    method: Literal["card", "cash"]
    country: str


sales = labelled(Counter, Order, "sales", "Sales.", namespace="shop")
sales.labels(method="card", country="pe").inc()
sales.labels("cash", "pe").inc(2)
sales.labels(method="cheque", country="pe")  # type: ignore[arg-type]
sales.labels(method="card")  # type: ignore[call-arg, misc]
sales.labels("card", "pe").observe(1)  # type: ignore[attr-defined]
sales.remove("card", "pe")
