"""Administration with aiokafka's old request versions, none of them flexible."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.structs import TopicPartition

from compat_tests.clients.aiokafka_client import AiokafkaClient
from compat_tests.clients.interface import Message
from compat_tests.conftest import NewTopic as MakeTopic
from compat_tests.eventually import eventually


def with_admin(bootstrap: str, work: Callable[[AIOKafkaAdminClient], Awaitable[Any]]) -> Any:
    """Run `work` with a started admin client."""

    async def run() -> Any:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(run())


def test_topics(bootstrap: str, topic_name: str) -> None:
    """Create, refuse, describe, extend, delete."""

    async def work(client: AIOKafkaAdminClient) -> list[int]:
        codes = []
        wanted = NewTopic(topic_name, 2, 1, topic_configs={"max.message.bytes": "2000"})
        for topic in (wanted, wanted, NewTopic(topic_name + "-2", 1, 3), NewTopic("bad name", 1, 1)):
            answer = await client.create_topics([topic])
            codes += [error[1] for error in answer.topic_errors]
        validated = await client.create_topics([NewTopic(topic_name + "-3", 1, 1)], validate_only=True)
        codes += [error[1] for error in validated.topic_errors]
        return codes

    assert with_admin(bootstrap, work) == [0, 36, 38, 17, 0]

    async def partitions(client: AIOKafkaAdminClient) -> Any:
        [described] = await client.describe_topics([topic_name])
        return [(p["partition"], p["leader"] in p["replicas"], p["isr"]) for p in described["partitions"]]

    [broker] = with_admin(bootstrap, lambda client: client.describe_cluster())["brokers"]
    node = broker["node_id"]
    described = with_admin(bootstrap, partitions)
    assert sorted(described) == [(0, True, [node]), (1, True, [node])]

    async def extend(client: AIOKafkaAdminClient) -> Any:
        return (await client.create_partitions({topic_name: NewPartitions(3)})).topic_errors

    [extended] = with_admin(bootstrap, extend)
    assert extended[1] == 0
    eventually(lambda: len(with_admin(bootstrap, partitions)), 3)

    async def delete(client: AIOKafkaAdminClient) -> Any:
        first = await client.delete_topics([topic_name])
        second = await client.delete_topics([topic_name])
        return [list(answer.topic_error_codes) for answer in (first, second)]

    assert with_admin(bootstrap, delete) == [[(topic_name, 0)], [(topic_name, 3)]]


def test_configs(bootstrap: str, new_topic: MakeTopic) -> None:
    """Describe with synonyms in version 2; the older alteration replaces all that was set."""
    topic = new_topic(**{"max.message.bytes": "2000"})

    async def describe(client: AIOKafkaAdminClient) -> Any:
        keys = {"max.message.bytes": None, "flush.ms": None}
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, keys)
        [answer] = await client.describe_configs([resource], include_synonyms=True)
        [(code, message, kind, name, entries)] = answer.resources
        assert (code, message, kind, name) == (0, "", 2, topic)
        return {entry[0]: (entry[1], entry[3], [tuple(s) for s in entry[5]]) for entry in entries}

    assert with_admin(bootstrap, describe) == {
        "flush.ms": ("9223372036854775807", 5, []),
        "max.message.bytes": (
            "2000",
            1,
            [("max.message.bytes", "2000", 1), ("message.max.bytes", "1048588", 5)],
        ),
    }

    async def alter(client: AIOKafkaAdminClient) -> Any:
        [answer] = await client.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic, {"flush.ms": "7"})]
        )
        return [list(resource) for resource in answer.resources]

    assert with_admin(bootstrap, alter) == [[0, None, 2, topic]]
    eventually(
        lambda: {name: entry[:2] for name, entry in with_admin(bootstrap, describe).items()},
        {"flush.ms": ("7", 1), "max.message.bytes": ("1048588", 5)},
    )


def test_delete_records(bootstrap: str, new_topic: MakeTopic) -> None:
    """The low watermark after deleting."""
    topic = new_topic()
    AiokafkaClient().produce(bootstrap, topic, [Message(None, b"%d" % n) for n in range(5)])
    partition = TopicPartition(topic, 0)
    deleted = with_admin(bootstrap, lambda client: client.delete_records({partition: RecordsToDelete(2)}))
    assert deleted == {partition: 2}
    assert AiokafkaClient().watermarks(bootstrap, topic) == (2, 5)
