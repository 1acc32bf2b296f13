"""A broker without listeners for the tests of transactions, with a topic `t` and the groups' topic."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from ottla.config.broker_config import BrokerConfig
from ottla.server.broker import Broker
from ottla.server.internal_topics import OFFSETS_TOPIC
from ottla.server.topic_creation import create_missing_topics


@pytest.fixture
async def broker(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Broker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
        "offsets.topic.num.partitions": "1",
        "num.partitions": "3",
    }
    config = BrokerConfig.load(settings)
    opened = await Broker.open(config, config.listeners(), random.Random(1))
    await create_missing_topics(opened, [OFFSETS_TOPIC, "t"])
    nursery.start_soon(opened.groups.run)
    yield opened
    nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        await opened.close()
