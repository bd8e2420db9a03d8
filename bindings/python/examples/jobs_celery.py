"""Jobs on Celery, whose worker forks its processes. They share the region of the environment:

    TALEA_REGION=/dev/shm/jobs.talea celery --app jobs_celery worker --concurrency 4
    talea serve /dev/shm/jobs.talea
"""

import os

from celery import Celery

import talea_metrics

DONE = talea_metrics.Counter("jobs_done", "Jobs done.", ["kind"])
TIMES = talea_metrics.Histogram("jobs_seconds", "Time of a job.")

# A folder as the broker, so that the example needs no other program.
FOLDER = os.environ.get("JOBS_FOLDER", "/tmp/jobs")
os.makedirs(FOLDER, exist_ok=True)

app = Celery("jobs", broker="filesystem://")
app.conf.broker_transport_options = {
    "data_folder_in": FOLDER,
    "data_folder_out": FOLDER,
    "control_folder": os.path.join(FOLDER, "control"),
}
app.conf.worker_prefetch_multiplier = 1


@app.task(ignore_result=True)
@TIMES.time()
def resize(kind: str) -> None:
    DONE.labels(kind).inc()
