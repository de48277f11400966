"""Reads numbers from standard input with Prometheus' own parsers and prints every sample as JSON.

Usage: read_metrics.py FORMAT, where FORMAT is `prometheus` or `openmetrics`. A text that the parser refuses is a failure.
"""

import json
import sys

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as prometheus

PARSERS = {
    "prometheus": prometheus.text_string_to_metric_families,
    "openmetrics": openmetrics.text_string_to_metric_families,
}


def main() -> None:
    families = {}
    for family in PARSERS[sys.argv[1]](sys.stdin.read()):
        if family.name in families:
            sys.exit(f"`{family.name}` comes twice")
        samples = [{"name": sample.name, "labels": sample.labels, "value": sample.value} for sample in family.samples]
        families[family.name] = {"type": family.type, "help": family.documentation, "samples": samples}
    json.dump(families, sys.stdout)


main()
