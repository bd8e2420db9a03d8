"""A shop on FastAPI. Four workers write into one region, and any of them answers scrapes for all:

    TALEA_REGION=/dev/shm/shop.talea uvicorn shop_fastapi:app --workers 4
    curl --location http://127.0.0.1:8000/metrics
"""

import asyncio

from fastapi import FastAPI

import talea_metrics
from talea_metrics.asgi import Middleware, make_asgi_app

ORDERS = talea_metrics.Counter("shop_orders", "Orders accepted.", ["method"])
PAYING = talea_metrics.Gauge("shop_paying", "Payments in progress.", multiprocess_mode="livesum")

app = FastAPI()
app.add_middleware(Middleware)
app.mount("/metrics", make_asgi_app())


@app.post("/orders/{method}")
async def order(method: str) -> str:
    with PAYING.track_inprogress():
        await asyncio.sleep(0.001)
    ORDERS.labels(method).inc()
    return "accepted"
