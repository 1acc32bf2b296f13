"""Open transactions in a data directory whose broker is killed, and which the other broker takes over."""

from pathlib import Path

from compat_tests.eventually import eventually
from compat_tests.kafka.real import RealKafka
from compat_tests.ottla_process import OttlaProcess
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_topics import create_topic, describe
from compat_tests.raw_transactions import RawProducer, read_committed
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

TOPIC = "t"
GROUP = "g"


def stable_offset(raw: RawClient) -> tuple[str, int]:
    """What a consumer that wants stable offsets gets of partition 0."""
    topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
    request = OffsetFetchRequest(
        require_stable=True, groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=topics)]
    )
    (group,) = raw.send(request, 9).groups
    (partition,) = group.topics[0].partitions
    return ErrorCode(partition.error_code).name, partition.committed_offset


def begin(producer: RawProducer, value: bytes, offset: int) -> None:
    """Write a record and an offset in a transaction."""
    if producer.version == 1:
        assert producer.add(TOPIC, 0) == ErrorCode.NONE
    assert producer.produce(TOPIC, 0, value) == ErrorCode.NONE
    assert producer.offsets(GROUP, TOPIC, 0, offset) == ErrorCode.NONE


def take_over(raw: RawClient, producers: list[RawProducer]) -> None:
    """Connect the producers to a broker that has just come up, and wait until it knows of them."""
    wait_for_coordinator(raw, GROUP)
    for producer in producers:
        producer.raw = raw
        eventually(producer.state, "Ongoing")


def go_on(
    raw: RawClient, producers: list[RawProducer], committed: list[bytes], round_number: int
) -> list[bytes]:
    """End what the other broker began, the first commits and the second aborts, and leave new transactions open."""
    take_over(raw, producers)
    assert read_committed(raw, TOPIC, 0) == (committed, False)
    assert stable_offset(raw) == ("UNSTABLE_OFFSET_COMMIT", -1)
    first, second = producers
    value = b"more %d" % round_number
    assert first.produce(TOPIC, 0, value) == ErrorCode.NONE
    assert first.end(committed=True) == ErrorCode.NONE
    assert second.end(committed=False) == ErrorCode.NONE
    committed = [*committed, b"first %d" % (round_number - 1), value]
    eventually(lambda: read_committed(raw, TOPIC, 0), (committed, True))
    eventually(lambda: stable_offset(raw), ("NONE", 10 * (round_number - 1)))
    for producer in producers:
        eventually(lambda each=producer: each.state().startswith("Complete"), True)  # type: ignore[misc]
    begin(first, b"first %d" % round_number, 10 * round_number)
    begin(second, b"second %d" % round_number, 10 * round_number + 1)
    return committed


def test_transactions_outlive_their_broker(tmp_path: Path) -> None:
    """Records, offsets, epochs and sequences of open transactions pass from one killed broker to the other."""
    data_dir = tmp_path / "data"
    with OttlaProcess(data_dir) as ottla, RawClient.to(ottla.bootstrap) as raw:
        create_topic(raw, TOPIC, 1)
        node = {"node.id": str(describe(raw, TOPIC).partitions[0].leader_id)}
        wait_for_coordinator(raw, GROUP)
        producers = [RawProducer(raw, f"tx{version}", version) for version in (1, 2)]
        for producer, value, offset in zip(producers, (b"first 0", b"second 0"), (0, 1), strict=True):
            assert producer.init() == ErrorCode.NONE
            begin(producer, value, offset)
        ottla.kill()
    committed: list[bytes] = []
    for round_number in (1, 2):
        made = RealKafka(data_dir, node) if round_number % 2 else OttlaProcess(data_dir)
        with made as broker, RawClient.to(broker.bootstrap) as raw:
            committed = go_on(raw, producers, committed, round_number)
            broker.kill()
    assert committed == [b"first 0", b"more 1", b"first 1", b"more 2"]
