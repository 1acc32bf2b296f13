"""What a case needs on a broker without testing it: topics, and a client of which all is known to work."""

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from compat_tests.matrix.clients import client_named
from compat_tests.matrix.driver import Driver
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import request_topic, wait_until_served

STAGE_CLIENT = "confluent-kafka"
PATIENCE_SECONDS = 60


class Stage:
    """The stage of one broker; the other client starts when it is first asked for."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._driver: Driver | None = None
        self._never = threading.Event()

    def driver(self) -> Driver:
        """The other client."""
        if self._driver is not None and self._driver.lost:
            self._driver.close()
            self._driver = None
        if self._driver is None:
            self._driver = client_named(STAGE_CLIENT).start(self.bootstrap)
        return self._driver

    def create_topic(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Make a topic that keeps records of any time, and wait until its leaders answer."""
        with RawClient.to(self.bootstrap) as raw:
            request_topic(raw, topic, partitions, {"retention.ms": "-1", **configs})
            wait_until_served(raw, topic, partitions, PATIENCE_SECONDS)

    def pause(self, seconds: float) -> None:
        """Let some time pass between two observations."""
        self._never.wait(seconds)

    def close(self) -> None:
        """End what was started."""
        if self._driver is not None:
            self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
