"""A shop on Django, in one file:

    TALEA_REGION=/dev/shm/shop.talea gunicorn --workers 4 shop_django:application
    curl http://127.0.0.1:8000/metrics
"""

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path

import talea_metrics

ORDERS = talea_metrics.Counter("shop_orders", "Orders accepted.", ["method"])
PAYING = talea_metrics.Gauge("shop_paying", "Payments in progress.", multiprocess_mode="livesum")

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    MIDDLEWARE=["talea_metrics.django.Middleware"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="for the example alone",
)


def order(request: HttpRequest, method: str) -> HttpResponse:
    with PAYING.track_inprogress():
        ORDERS.labels(method).inc()
    return HttpResponse("accepted")


def metrics(request: HttpRequest) -> HttpResponse:
    return HttpResponse(talea_metrics.generate_latest(), content_type=talea_metrics.CONTENT_TYPE_LATEST)


urlpatterns = [path("orders/<str:method>", order), path("metrics", metrics)]
application = get_wsgi_application()
