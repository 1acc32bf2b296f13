"""Brokers that are asked without sockets, to compare the answers of two."""

import random
from pathlib import Path

from ottla.config.broker_config import BrokerConfig
from ottla.server.broker import Broker
from ottla.server.registry import Registration
from ottla.server.topic_creation import create_topics
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest


async def open_broker(directory: Path, partitions: int) -> Broker:
    """With a topic `t`, and the ids that every broker made here has."""
    directory.mkdir()
    properties = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory)}
    config = BrokerConfig.load(properties)
    broker = await Broker.open(config, config.listeners(), random.Random(1))
    topic = CreatableTopic(name="t", num_partitions=partitions, replication_factor=1)
    await create_topics(broker, CreateTopicsRequest(topics=[topic]))
    return broker


def prepare_all(registration: Registration) -> None:
    """So that no request waits for its code."""
    for version in range(registration.min_version, registration.max_version + 1):
        registration.prepare(version)
