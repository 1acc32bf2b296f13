"""What a case needs on a broker without testing it: topics, and a client of which all is known to work."""

import threading
from collections.abc import Mapping
from contextlib import closing
from types import TracebackType
from typing import Self

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec

from compat_tests.matrix.clients import client_named
from compat_tests.matrix.driver import Driver

STAGE_CLIENT = "confluent-kafka"


class Stage:
    """The stage of one broker; the other client starts when it is first asked for."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin: KafkaAdminClient | None = None
        self._driver: Driver | None = None
        self._never = threading.Event()

    def driver(self) -> Driver:
        """The other client."""
        if self._driver is None or self._driver.lost:
            self._driver = client_named(STAGE_CLIENT).start(self.bootstrap)
        return self._driver

    def create_topic(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Make a topic that keeps records of any time, and wait until its leaders answer."""
        if self._admin is None:
            self._admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        settings = {"retention.ms": "-1", **configs}
        wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": settings}
        self._admin.create_topics({topic: wanted}, wait_for_metadata=True)
        # Kafka names a leader a moment before it leads; this asks again until it does.
        latest = {TopicPartition(topic, number): OffsetSpec.LATEST for number in range(partitions)}
        self._admin.list_partition_offsets(latest)

    def pause(self, seconds: float) -> None:
        """Let some time pass between two observations."""
        self._never.wait(seconds)

    def close(self) -> None:
        """End what was started."""
        if self._driver is not None:
            self._driver.close()
        if self._admin is not None:
            with closing(self._admin):
                self._admin = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
