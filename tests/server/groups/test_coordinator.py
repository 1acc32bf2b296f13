"""The coordinator around its shards: loading, time-outs by the clock, waiters, and logs that refuse."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from ottla.config.broker_config import BrokerConfig
from ottla.group_coordinator.records import encode_key, encode_value
from ottla.group_coordinator.records.offsets import OffsetCommitKey, OffsetCommitValue
from ottla.log_store.validation import AppendOrigin
from ottla.metadata.image import MetadataDelta
from ottla.server.broker import Broker
from ottla.server.context import RequestContext
from ottla.server.groups import coordinator as coordinator_module
from ottla.server.groups import runner as runner_module
from ottla.server.groups.loading import ShardLoader
from ottla.server.internal_topics import OFFSETS_TOPIC
from ottla.server.topic_creation import create_missing_topics
from ottla.wire.errors import ErrorCode, KafkaError, MalformedMessage
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.records import ControlType, Record, build_batch
from ottla.wire.records.control import build_end_txn_marker

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "3000",
}


async def open_broker(directory: Path, **more: str) -> Broker:
    settings = {**SETTINGS, "log.dirs": str(directory), **{k.replace("_", "."): v for k, v in more.items()}}
    config = BrokerConfig.load(settings)
    opened = await Broker.open(config, config.listeners(), random.Random(1))
    await create_missing_topics(opened, [OFFSETS_TOPIC, "t"])
    return opened


@pytest.fixture
async def broker(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Broker]:
    opened = await open_broker(tmp_path)
    nursery.start_soon(opened.groups.run)
    yield opened
    nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        await opened.close()


def context(broker: Broker, version: int = 3) -> RequestContext:
    made = RequestContext(broker, "PLAINTEXT", "127.0.0.1")
    made.api_version = version
    made.client_id = "c"
    return made


async def ask(broker: Broker, message: Any, version: int = 3) -> Any:
    return await broker.groups.ask(context(broker, version), "g", message)


def join_request(member_id: str = "") -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol("range", b"")]
    return JoinGroupRequest("g", 10_000, 60_000, member_id, None, "consumer", protocols)


async def join_and_sync(broker: Broker) -> Any:
    joined = await ask(broker, join_request())
    assignments = [SyncGroupRequestAssignment(joined.member_id, b"part")]
    await ask(broker, SyncGroupRequest("g", joined.generation_id, joined.member_id, assignments=assignments))
    return joined


async def test_time_outs_by_the_clock(broker: Broker, autojump_clock: trio.testing.MockClock) -> None:
    """The first delay parks the member for three seconds; a session of ten ends when nobody is heard of."""
    start = trio.current_time()
    joined = await join_and_sync(broker)
    assert trio.current_time() - start == pytest.approx(3)
    heartbeat = HeartbeatRequest("g", joined.generation_id, joined.member_id)
    for _ in range(5):
        await trio.sleep(9.9)
        assert (await ask(broker, heartbeat)).error_code == ErrorCode.NONE
    await trio.sleep(10.1)
    assert (await ask(broker, heartbeat)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_member_whose_connection_ends(broker: Broker, autojump_clock: trio.testing.MockClock) -> None:
    """Its answer is dropped, and nothing of it stays."""
    with trio.move_on_after(1):
        await ask(broker, join_request())
    await trio.sleep(5)
    runner = broker.groups._runner_of("g")
    assert (runner._answers, runner._parked) == ({}, {})


async def test_stop_lets_waiters_go(broker: Broker, autojump_clock: trio.testing.MockClock) -> None:
    """Whoever is parked learns at once that this is no coordinator any more; who comes later is not let in."""
    codes = []

    async def wait() -> None:
        with pytest.raises(KafkaError) as caught:
            await ask(broker, join_request())
        codes.append(caught.value.code)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        broker.begin_stop()
    await wait()
    assert codes == [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE]


async def test_log_that_refuses(
    broker: Broker, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is sent away, the shard is loaded anew from its log, and the group is what it was."""
    joined = await join_and_sync(broker)
    partition = broker.partitions.by_name(OFFSETS_TOPIC, 0)

    def refuse(*_: Any, **__: Any) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    with monkeypatch.context() as patched:
        patched.setattr(runner_module.ShardRunner, "_append", refuse)
        with pytest.raises(KafkaError) as caught:
            await ask(broker, LeaveGroupRequest("g", members=[MemberIdentity(joined.member_id)]))
    assert caught.value.code is ErrorCode.NOT_COORDINATOR
    with pytest.raises(KafkaError) as caught:
        broker.groups.shard_of("g")
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    with pytest.raises(KafkaError):
        broker.groups.shards()
    while broker.groups._loading:
        await trio.sleep(0.1)
    heartbeat = HeartbeatRequest("g", joined.generation_id, joined.member_id)
    assert (await ask(broker, heartbeat)).error_code == ErrorCode.NONE
    assert partition.log.log_end_offset == 2


async def test_loading_in_slices(tmp_path: Path) -> None:
    """Slices of any size give the same offsets, and meanwhile nobody is told that there is none."""
    broker = await open_broker(tmp_path)
    partition = broker.partitions.by_name(OFFSETS_TOPIC, 0)
    for offset in range(50):
        append(partition, [(OffsetCommitKey("g", "t", 0), OffsetCommitValue(offset, metadata="m"))])
    await broker.close()
    broker = await open_broker(tmp_path, offsets_load_buffer_size="100")
    with pytest.raises(KafkaError) as caught:
        broker.groups.shard_of("g")
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.groups.run)
        while broker.groups._loading:
            await trio.sleep(0.01)
        found = broker.groups.shard_of("g").offsets.get("g", "t", 0)
        assert found is not None
        assert found.offset == 49
        nursery.cancel_scope.cancel()
    await broker.close()


async def test_loading_that_fails(
    broker: Broker,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Groups that cannot be loaded are sent elsewhere, as in Kafka, and loaded again after a while, later each time; a
    log that is closed is left alone."""
    joined = await join_and_sync(broker)
    fails = [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), MalformedMessage("damaged"), OSError(5, "slow")]

    class FailingLoader(ShardLoader):
        def load_slice(self, now_ms: int) -> None:
            if fails:
                raise fails.pop(0)
            super().load_slice(now_ms)

    def announced() -> list[str]:
        """How long it was said to take until the next try, each time."""
        return [line.split()[-2] for line in caplog.messages if "are loaded again in" in line]

    monkeypatch.setattr(coordinator_module, "ShardLoader", FailingLoader)
    broker.groups._give_up(broker.groups._runner_of("g"), KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    codes = set()
    while 0 not in broker.groups._runners:
        with pytest.raises(KafkaError) as caught:
            broker.groups.shard_of("g")
        codes.add(caught.value.code)
        await trio.sleep(0.5)
    assert codes == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
    assert announced() == ["1", "2", "4"]
    heartbeat = HeartbeatRequest("g", joined.generation_id, joined.member_id)
    assert (await ask(broker, heartbeat)).error_code == ErrorCode.NONE

    fails.append(OSError(5, "gone"))
    broker.groups._give_up(broker.groups._runner_of("g"), KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    while len(announced()) < 4:
        await trio.sleep(0.01)
    broker.partitions.by_name(OFFSETS_TOPIC, 0).log.close()
    await trio.sleep(100)
    with pytest.raises(KafkaError) as caught:
        broker.groups.shard_of("g")
    assert caught.value.code is ErrorCode.NOT_COORDINATOR


async def test_transactions_in_the_log(tmp_path: Path) -> None:
    """Offsets that Apache Kafka committed in transactions count when the transaction was committed."""
    broker = await open_broker(tmp_path)
    partition = broker.partitions.by_name(OFFSETS_TOPIC, 0)
    shard = broker.groups.shard_of("g")
    for producer_id, kind in ((1, ControlType.COMMIT), (2, ControlType.ABORT), (3, None)):
        key = OffsetCommitKey("g", "t", producer_id)
        records = [Record(0, 1, encode_key(key), encode_value(OffsetCommitValue(7)))]
        batch = build_batch(
            records, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
        )
        partition.append(memoryview(bytearray(batch)), 1, AppendOrigin.COORDINATOR)
        if kind is not None:
            marker = build_end_txn_marker(
                kind, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=1
            )
            partition.append(memoryview(bytearray(marker)), 1, AppendOrigin.COORDINATOR)
    loader = ShardLoader(shard, partition.log, 1_000_000)
    while not loader.is_done:
        loader.load_slice(1)
    assert shard.offsets.of_group("g")["t"].keys() == {1}
    await broker.close()


def append(partition: Any, records: list[tuple[Any, Any]]) -> None:
    made = [Record(n, 1, encode_key(key), encode_value(value)) for n, (key, value) in enumerate(records)]
    partition.append(memoryview(bytearray(build_batch(made))), 1, AppendOrigin.COORDINATOR)


async def test_made_while_the_partitions_are_made(broker: Broker) -> None:
    """A coordinator made before it hears of its partitions does not take them over a second time."""
    partition = broker.partitions.by_name(OFFSETS_TOPIC, 0)
    runner = broker.groups._runner_of("g")
    topic = broker.image.topics_by_name[OFFSETS_TOPIC]
    await broker.late.follow(MetadataDelta(new_partitions=[(topic, partition.index)]))
    assert broker.groups._runner_of("g") is runner
