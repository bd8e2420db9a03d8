"""Reads an exposition from its input with a parser of prometheus_client, and writes each
sample as a line of JSON. Numbers are text, because JSON has no NaN."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text

parse = {"text": text, "openmetrics": openmetrics}[sys.argv[1]]
for family in parse(sys.stdin.buffer.read().decode()):
    for sample in family.samples:
        exemplar = sample.exemplar and {
            "name": sample.name,
            "labels": sample.exemplar.labels,
            "value": repr(float(sample.exemplar.value)),
            "timestamp": str(sample.exemplar.timestamp),
        }
        print(
            json.dumps(
                {
                    "name": sample.name,
                    "labels": sample.labels,
                    "value": repr(float(sample.value)),
                    "exemplar": exemplar,
                }
            )
        )
