"""A member on librdkafka."""

from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from compat_tests.group_members.telling import Telling, end_of_input

BATCH = 500


class Member:
    """Reads record by record; what it has not committed it commits before partitions are taken from it."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._topic = settings.pop("topic")
        self._telling = Telling()
        self._offsets: dict[int, list[int]] = {}
        own = {"enable.auto.commit": "false", "auto.offset.reset": "earliest", "log_level": "0"}
        self._consumer = Consumer({**own, **settings})

    def run(self) -> None:
        ended = end_of_input()
        self._consumer.subscribe([self._topic], on_revoke=self._revoked, on_lost=self._lost)
        while not ended.is_set():
            for number in range(BATCH):
                message: Any = self._consumer.poll(0 if number else 0.1)
                if message is None:
                    break
                if message.error() is None:
                    self._offsets.setdefault(message.partition(), []).append(message.offset())
            self._telling.owns([each.partition for each in self._consumer.assignment()])
            self._commit()
        self._consumer.close()
        self._telling.left()

    def _revoked(self, _consumer: Any, _partitions: Any) -> None:
        self._commit()

    def _lost(self, _consumer: Any, _partitions: Any) -> None:
        self._offsets = {}

    def _commit(self) -> None:
        if not self._offsets:
            return
        wanted = self._telling.read(self._offsets)
        self._offsets = {}
        positions = [TopicPartition(self._topic, *each) for each in wanted.items()]
        try:
            self._consumer.commit(offsets=positions, asynchronous=False)
            self._telling.committed(wanted)
        except KafkaException as error:
            self._telling.failed(error)


def run(settings: dict[str, str]) -> None:
    """Be a member until standard input ends."""
    Member(settings).run()
