"""The two brokers of a run, with the same settings."""

from contextlib import ExitStack

from compat_tests.broker_process import BrokerProcess
from compat_tests.kafka.jars import KAFKA_VERSION, OLDER_VERSION
from compat_tests.kafka.real import RealKafka
from compat_tests.matrix.judge import KAFKA, OTTLA
from compat_tests.matrix.settings import SETTINGS
from compat_tests.ottla_process import OttlaProcess

# The first is the one that Ottla must be like.
REFERENCES = {".".join(version.split(".")[:2]): version for version in (KAFKA_VERSION, OLDER_VERSION)}
NEWEST = next(iter(REFERENCES))


def start_brokers(stack: ExitStack, reference: str = NEWEST) -> dict[str, str]:
    """Start Ottla and that Apache Kafka, to be ended by the stack; their addresses."""
    # On a busy machine Kafka's controller would miss its broker, and tell clients of none.
    kafka_settings = {**SETTINGS, "broker.session.timeout.ms": "60000"}
    brokers: dict[str, BrokerProcess] = {
        KAFKA: stack.enter_context(RealKafka(properties=kafka_settings, version=REFERENCES[reference])),
        OTTLA: stack.enter_context(OttlaProcess(properties=SETTINGS)),
    }
    return {name: broker.bootstrap for name, broker in brokers.items()}
