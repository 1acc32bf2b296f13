"""Markers in the partitions of a transaction: who sees its records, which marker is refused, which offsets count."""

from ottla.group_coordinator.records import encode_key, encode_value
from ottla.group_coordinator.records.offsets import OffsetCommitKey, OffsetCommitValue
from ottla.log_store.txn_index import AbortedTxn
from ottla.log_store.validation import AppendOrigin
from ottla.server.broker import Broker
from ottla.server.internal_topics import OFFSETS_TOPIC
from ottla.server.partition import Partition
from ottla.server.transactions.markers import Marker, write_marker, write_markers
from ottla.wire.errors import ErrorCode
from ottla.wire.records import Record, build_batch

PRODUCER_ID = 7


def append(partition: Partition, *records: Record, epoch: int = 0) -> None:
    batch = build_batch(records, producer_id=PRODUCER_ID, producer_epoch=epoch, is_transactional=True)
    partition.append(memoryview(bytearray(batch)), 1, AppendOrigin.COORDINATOR)


def append_value(broker: Broker, index: int, epoch: int = 0) -> Partition:
    partition = broker.partitions.by_name("t", index)
    append(partition, Record(0, 1, None, b"value"), epoch=epoch)
    return partition


def append_offset(broker: Broker, offset: int) -> None:
    """Commit an offset of t-0 in the transaction, as the group coordinator does."""
    key, value = OffsetCommitKey("g", "t", 0), OffsetCommitValue(offset, metadata="", commit_timestamp=1)
    append(broker.partitions.by_name(OFFSETS_TOPIC, 0), Record(0, 1, encode_key(key), encode_value(value)))
    broker.groups.shard_of("g").offsets.pending.add(PRODUCER_ID, key, value, 0)


async def test_all_partitions_of_a_transaction(broker: Broker) -> None:
    """The last stable offset passes each of them; partitions that are not there are told one by one."""
    partitions = [append_value(broker, index) for index in range(3)]
    assert [each.log.last_stable_offset for each in partitions] == [0, 0, 0]
    marker = Marker(PRODUCER_ID, 1, 0, committed=True, transaction_version=2)
    names = [("t", 0), ("t", 1), ("t", 2), ("t", 3), ("none", 0)]
    assert await write_markers(broker, marker, names) == {
        ("t", 0): ErrorCode.NONE,
        ("t", 1): ErrorCode.NONE,
        ("t", 2): ErrorCode.NONE,
        ("t", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert [each.log.last_stable_offset for each in partitions] == [2, 2, 2]


async def test_abort(broker: Broker) -> None:
    """An aborted transaction is passed too, and readers are told to leave it out."""
    partition = append_value(broker, 0)
    woken = []
    partition.committed_waiters.add(type("Waiter", (), {"notify": lambda self: woken.append(True)})())
    assert await write_marker(broker, "t", 0, PRODUCER_ID, 0, 0, False, 0) is ErrorCode.NONE
    assert woken
    log = partition.log
    assert log.last_stable_offset == 2
    found = log.read(0, 1000, upto=2, at_least_one=True)
    assert log.aborted_transactions(0, found) == [AbortedTxn(PRODUCER_ID, 0, 1, 2)]


async def test_refused_markers(broker: Broker) -> None:
    """Older epochs of the producer or the coordinator are fenced; with version 2 the epoch must be a newer one."""
    partition = append_value(broker, 0, epoch=5)

    async def write(epoch: int, coordinator_epoch: int, version: int) -> ErrorCode:
        return await write_marker(broker, "t", 0, PRODUCER_ID, epoch, coordinator_epoch, True, version)

    assert await write(4, 3, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await write(5, 3, 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.log.last_stable_offset == 0
    assert await write(6, 3, 2) is ErrorCode.NONE
    assert await write(6, 3, 2) is ErrorCode.NONE  # told once more
    assert await write(6, 2, 2) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert partition.log.last_stable_offset == partition.log.log_end_offset == 3


async def test_offsets_of_groups(broker: Broker) -> None:
    """They count when their transaction commits and are forgotten when it aborts; a refused marker changes nothing."""
    offsets = broker.groups.shard_of("g").offsets
    append_offset(broker, 5)
    assert await write_marker(broker, OFFSETS_TOPIC, 0, PRODUCER_ID, 0, 1, True, 0) is ErrorCode.NONE
    append_offset(broker, 9)
    assert (
        await write_marker(broker, OFFSETS_TOPIC, 0, PRODUCER_ID, 0, 0, True, 0)
        is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    )
    assert offsets.pending.has("g", "t", 0)
    assert await write_marker(broker, OFFSETS_TOPIC, 0, PRODUCER_ID, 0, 1, False, 0) is ErrorCode.NONE
    found = offsets.get("g", "t", 0)
    assert found is not None
    assert found.offset == 5
    assert not offsets.pending


async def test_groups_that_are_not_ready(broker: Broker) -> None:
    """A coordinator of transactions is told that the leader is not ready, and tries again."""
    broker.groups.begin_stop()
    assert (
        await write_marker(broker, OFFSETS_TOPIC, 0, PRODUCER_ID, 0, 0, True, 0)
        is ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
