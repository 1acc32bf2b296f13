"""Kafka's names of its error codes, for drivers in languages that cannot import our table of them."""

import json

from ottla.wire.errors import ErrorCode

ENVIRONMENT = {"KAFKA_ERROR_NAMES": json.dumps({code.value: code.name for code in ErrorCode})}
