"""A broker without listeners for the tests of transactions, with a topic `t` and the groups' topic, and a
coordinator of transactions that answers as it is told."""

import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from ottla.config.broker_config import BrokerConfig
from ottla.log_store.checkpoints import TopicPartition
from ottla.server.broker import Broker
from ottla.server.internal_topics import OFFSETS_TOPIC
from ottla.server.topic_creation import create_missing_topics
from ottla.wire.errors import ErrorCode


async def open_broker(directory: Path) -> Broker:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(directory),
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "num.partitions": "3",
    }
    config = BrokerConfig.load(settings)
    opened = await Broker.open(config, config.listeners(), random.Random(1))
    await create_missing_topics(opened, [OFFSETS_TOPIC, "t"])
    return opened


@pytest.fixture
async def broker(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Broker]:
    opened = await open_broker(tmp_path)
    nursery.start_soon(opened.late.run)
    yield opened
    nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        await opened.close()


class Coordinator:
    """Answers with the same error until told otherwise."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.answers: list[ErrorCode] = []
        self.before_answer: Any = None
        self.is_quick = False  # nobody need wait for its answers

    async def _answer(self, *question: Any) -> dict[TopicPartition, ErrorCode]:
        self.asked.append(question)
        if self.before_answer is not None:
            await self.before_answer()
        code = self.answers.pop(0) if self.answers else ErrorCode.NONE
        return dict.fromkeys(question[-1], code)

    def adds_at_once(self, transactional_id: str) -> bool:
        return self.is_quick

    async def verify(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        return await self._answer("verify", transactional_id, producer_id, epoch, tuple(partitions))

    async def add_partitions(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        return await self._answer("add", transactional_id, producer_id, epoch, tuple(partitions))


@pytest.fixture
def coordinator(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    made = Coordinator()
    monkeypatch.setattr(type(broker), "transactions", made, raising=False)
    return made
