"""A shop on Flask. The workers are forked from a parent that has loaded the shop, and share its memory
with no setting at all:

    gunicorn --workers 4 --preload shop_flask:app
    curl http://127.0.0.1:8000/metrics
"""

import flask

import talea_metrics
from talea_metrics.wsgi import meter_flask

ORDERS = talea_metrics.Counter("shop_orders", "Orders accepted.", ["method"])
PAYING = talea_metrics.Gauge("shop_paying", "Payments in progress.", multiprocess_mode="livesum")

app = flask.Flask(__name__)
meter_flask(app)


@app.post("/orders/<method>")
def order(method: str) -> str:
    with PAYING.track_inprogress():
        ORDERS.labels(method).inc()
    return "accepted"


@app.get("/metrics")
def metrics() -> flask.Response:
    return flask.Response(talea_metrics.generate_latest(), content_type=talea_metrics.CONTENT_TYPE_LATEST)
