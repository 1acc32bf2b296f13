"""The Python clients: their drivers run in this environment, which has the libraries as `.[test]`."""

import functools
import importlib.util
import sys

from compat_tests.matrix.clients import Client, NotHere


def _ready(package: str, module: str) -> list[str]:
    if importlib.util.find_spec(package) is None:
        raise NotHere(f"no {package}: pip install '.[test]'")
    return [sys.executable, "-m", f"compat_tests.matrix.drivers.{module}"]


CLIENTS = [
    Client(
        "kafka-python", "kafka-python", "Python", functools.partial(_ready, "kafka", "kafka_python_driver")
    ),
    Client(
        "confluent-kafka",
        "confluent-kafka (librdkafka)",
        "Python",
        functools.partial(_ready, "confluent_kafka", "confluent_kafka_driver"),
    ),
    Client("aiokafka", "aiokafka", "Python", functools.partial(_ready, "aiokafka", "aiokafka_driver")),
]
