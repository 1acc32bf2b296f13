"""What comes with Apache Kafka beside its clients: each is a row of its own, with cases of its own and no driver."""

from collections.abc import Callable

from compat_tests.kafka.jars import (
    KAFKA_VERSION,
    JarsUnavailable,
    connect_classpath,
    kafka_classpath,
    streams_classpath,
)
from compat_tests.matrix.clients import Client, NotHere

TOOLS, STREAMS, CONNECT, MIRROR_MAKER = "kafka-tools", "kafka-streams", "kafka-connect", "mirror-maker"


def _row(name: str, title: str, classpath: Callable[[], str]) -> Client:
    def ready() -> list[str]:
        try:
            classpath()
        except JarsUnavailable as error:
            raise NotHere(f"no Java or no jars: {error}") from None
        return []

    return Client(name, title, "Java", ready, shared=False, version=KAFKA_VERSION)


CLIENTS = [
    _row(TOOLS, "Kafka's command-line tools", kafka_classpath),
    _row(STREAMS, "Kafka Streams", streams_classpath),
    _row(CONNECT, "Kafka Connect", connect_classpath),
    _row(MIRROR_MAKER, "MirrorMaker 2", connect_classpath),
]
