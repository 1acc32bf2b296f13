"""Requests about very many things, and how long somebody else waits beside them.

The requests of an occasion are made before the clock runs and sent over plain sockets, one client or several. From then
on until all are answered, one more client sends a record at a time with acks=all: the longest that it waits is what
matters. Every answer is looked at for errors afterwards.
"""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from benchmarks.process_figures import Stopwatch, Target, timed
from benchmarks.raw_load import PATIENCE_SECONDS, batch, frame, produce_frame
from compat_tests.raw_client import RawClient, response_type
from compat_tests.raw_groups import subscription, wait_for_coordinator
from compat_tests.raw_topics import create_topic, wait_until_served
from compat_tests.raw_transactions import RawProducer
from ottla.wire.errors import ErrorCode
from ottla.wire.headers import decode_response_header
from ottla.wire.messages import (
    add_partitions_to_txn,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    end_txn,
    fetch,
    incremental_alter_configs,
    join_group,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
)
from ottla.wire.records import Record, build_batch
from ottla.wire.schema import decode

PARTITIONS, TOPICS, GROUPS, MEMBERS, FLOOD = 5000, 1000, 1000, 500, 1000
WIDE, BYSTANDER = "wide", "bystander"
TOPIC_CONFIG = 2
_WARM_UP = 50
_RECEIVE_BYTES = 1 << 20
_EVERYTHING = range(PARTITIONS)
_MADE_BEFORE = [f"topic-{number:04d}" for number in range(TOPICS)]

Asked = list[tuple[Any, int]]  # requests and their versions, of one client


@dataclass(frozen=True, slots=True)
class Occasion:
    """Something that keeps a broker busy. `requests` makes those of each client, and does what has to be done before;
    the number is another one each time."""

    title: str
    requests: Callable[[RawClient, int], list[Asked]]
    repeats: int = 3


OCCASIONS: dict[str, Occasion] = {}


def occasion(title: str, repeats: int = 3) -> Callable[[Callable[[RawClient, int], list[Asked]]], Any]:
    """Add one; they come in the order in which they stand here."""

    def add(requests: Callable[[RawClient, int], list[Asked]]) -> Any:
        OCCASIONS[title] = Occasion(title, requests, repeats)
        return requests

    return add


def prepare(broker: Target) -> None:
    """Make the topics that are asked about."""
    with RawClient("127.0.0.1", int(broker.bootstrap.rpartition(":")[2]), PATIENCE_SECONDS) as raw:
        create_topic(raw, BYSTANDER)
        _create(raw, [WIDE], PARTITIONS)
        _create(raw, _MADE_BEFORE, 1)
        for name, partitions in ((WIDE, PARTITIONS), (_MADE_BEFORE[-1], 1)):
            wait_until_served(raw, name, partitions, PATIENCE_SECONDS)
        wait_for_coordinator(raw, "group")
        assert RawProducer(raw, "first", 1).init() == ErrorCode.NONE


def beside(broker: Target, title: str, number: int) -> Stopwatch:
    """How long one client waits at most for an acknowledgement, in milliseconds, while others have such requests."""
    host, _, port = broker.bootstrap.rpartition(":")
    with RawClient(host, int(port), PATIENCE_SECONDS) as raw:
        asked = OCCASIONS[title].requests(raw, number)
    with ExitStack() as stack:

        def connect() -> socket.socket:
            sock = stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_SECONDS))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock

        bystander = connect()
        record = produce_frame(BYSTANDER, 0, batch(100, 1), -1)
        for _ in range(_WARM_UP):
            _acknowledged(bystander, record)
        clients = [_Client(connect(), each) for each in asked]
        waits = []
        with timed(broker) as watch:
            left = clients
            while left:
                for client in left:
                    client.go_on()
                left = [client for client in left if not client.is_done]
                waits.append(_acknowledged(bystander, record))
    for client in clients:
        client.check()
    watch.result["longest_ms"] = max(waits) * 1000
    watch.result["records"] = len(waits)
    return watch


def _acknowledged(sock: socket.socket, record: bytes) -> float:
    before = time.perf_counter()
    sock.sendall(record)
    size = int.from_bytes(_exactly(sock, 4), "big")
    _exactly(sock, size)
    return time.perf_counter() - before


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        received = sock.recv(size - len(data))
        assert received, "the broker closed the connection"
        data += received
    return data


class _Client:
    """Sends its requests and takes what comes, without ever waiting."""

    def __init__(self, sock: socket.socket, asked: Asked) -> None:
        self._sock = sock
        sock.setblocking(False)
        self._asked = asked
        self._unsent = memoryview(b"".join(frame(request, version) for request, version in asked))
        self._received = bytearray()
        self._frames: list[bytes] = []

    @property
    def is_done(self) -> bool:
        return len(self._frames) == len(self._asked)

    def go_on(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except BlockingIOError:
            pass
        try:
            received = self._sock.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        assert received, "the broker closed the connection"
        self._received += received
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:4], "big")
            if len(self._received) < end:
                break
            self._frames.append(bytes(self._received[4:end]))
            del self._received[:end]

    def check(self) -> None:
        """Raise AssertionError if an answer tells of an error."""
        for (request, version), data in zip(self._asked, self._frames, strict=True):
            view = memoryview(data)
            _, position = decode_response_header(request.API_KEY, version, view)
            answer = decode(response_type(type(request)), version, view[position:])
            wrong = set(_errors(answer)) - {ErrorCode.NONE}
            assert not wrong, f"{type(answer).__name__} has errors {sorted(wrong)}"


def _errors(value: Any) -> Iterator[int]:
    """The error codes in an answer."""
    if is_dataclass(value):
        for field in fields(value):
            inner = getattr(value, field.name)
            if field.name.endswith("error_code"):
                yield inner
            else:
                yield from _errors(inner)
    elif isinstance(value, list):
        for each in value:
            yield from _errors(each)


# ---- the occasions


def _created(names: Sequence[str], partitions: int) -> Asked:
    topics = [create_topics.CreatableTopic(name, partitions, 1) for name in names]
    return [(create_topics.CreateTopicsRequest(topics=topics, timeout_ms=120_000), 7)]


def _create(raw: RawClient, names: Sequence[str], partitions: int) -> None:
    for request, version in _created(names, partitions):
        answer = raw.send(request, version)
        assert not set(_errors(answer)) - {ErrorCode.NONE}, answer


def _deleted(names: Sequence[str]) -> Asked:
    topics = [delete_topics.DeleteTopicState(name=name) for name in names]
    return [(delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=120_000), 6)]


@occasion("a topic of 5,000 partitions is made", repeats=1)
def _make_wide(raw: RawClient, number: int) -> list[Asked]:
    return [_created([f"new-{number}"], PARTITIONS)]


@occasion("and deleted", repeats=1)
def _delete_wide(raw: RawClient, number: int) -> list[Asked]:
    wait_until_served(raw, f"new-{number}", PARTITIONS, PATIENCE_SECONDS)
    return [_deleted([f"new-{number}"])]


@occasion("1,000 topics are made", repeats=1)
def _make_many(raw: RawClient, number: int) -> list[Asked]:
    return [_created([f"many-{number}-{each}" for each in range(TOPICS)], 1)]


@occasion("and deleted, too", repeats=1)
def _delete_many(raw: RawClient, number: int) -> list[Asked]:
    wait_until_served(raw, f"many-{number}-{TOPICS - 1}", 1, PATIENCE_SECONDS)
    return [_deleted([f"many-{number}-{each}" for each in range(TOPICS)])]


@occasion("20 clients ask for the metadata of 6,000 partitions")
def _metadata(raw: RawClient, number: int) -> list[Asked]:
    return [[(metadata.MetadataRequest(topics=None), 12)]] * 20


@occasion("a client sends to 5,000 partitions at once")
def _produce(raw: RawClient, number: int) -> list[Asked]:
    return [[(_sent(batch(100, 1)), 9)]]


def _sent(records: bytes, transactional_id: str | None = None) -> Any:
    data = [produce.PartitionProduceData(index, records) for index in _EVERYTHING]
    topics = [produce.TopicProduceData(WIDE, partition_data=data)]
    return produce.ProduceRequest(transactional_id, acks=-1, timeout_ms=30_000, topic_data=topics)


@occasion("10 clients ask where 5,000 partitions end")
def _list_offsets(raw: RawClient, number: int) -> list[Asked]:
    wanted = [list_offsets.ListOffsetsPartition(index, -1, -1) for index in _EVERYTHING]
    topics = [list_offsets.ListOffsetsTopic(WIDE, wanted)]
    return [[(list_offsets.ListOffsetsRequest(-1, topics=topics), 7)]] * 10


@occasion("a client fetches from 5,000 partitions")
def _fetch(raw: RawClient, number: int) -> list[Asked]:
    wanted = [
        fetch.FetchPartition(index, fetch_offset=0, partition_max_bytes=_RECEIVE_BYTES)
        for index in _EVERYTHING
    ]
    topics = [fetch.FetchTopic(WIDE, partitions=wanted)]
    request = fetch.FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=32 << 20, session_epoch=-1, topics=topics
    )
    return [[(request, 11)]]


@occasion("5,000 offsets are committed and fetched")
def _offsets(raw: RawClient, number: int) -> list[Asked]:
    committed = [offset_commit.OffsetCommitRequestPartition(index, number, -1, "") for index in _EVERYTHING]
    topics = [offset_commit.OffsetCommitRequestTopic(WIDE, partitions=committed)]
    groups = [offset_fetch.OffsetFetchRequestGroup("group", topics=None)]
    return [
        [
            (offset_commit.OffsetCommitRequest("group", topics=topics), 9),
            (offset_fetch.OffsetFetchRequest(groups=groups), 9),
        ]
    ]


@occasion("the configs of 1,000 topics are described")
def _describe_configs(raw: RawClient, number: int) -> list[Asked]:
    resources = [describe_configs.DescribeConfigsResource(TOPIC_CONFIG, name, None) for name in _MADE_BEFORE]
    return [[(describe_configs.DescribeConfigsRequest(resources, include_synonyms=True), 4)]]


@occasion("and changed")
def _alter_configs(raw: RawClient, number: int) -> list[Asked]:
    changed = incremental_alter_configs.AlterableConfig("retention.ms", 0, str(604_800_000 + number))
    resources = [
        incremental_alter_configs.AlterConfigsResource(TOPIC_CONFIG, name, [changed]) for name in _MADE_BEFORE
    ]
    return [[(incremental_alter_configs.IncrementalAlterConfigsRequest(resources), 1)]]


@occasion("the log directories are described")
def _log_dirs(raw: RawClient, number: int) -> list[Asked]:
    return [[(describe_log_dirs.DescribeLogDirsRequest(topics=None), 4)]]


@occasion("records of 5,000 partitions are deleted")
def _delete_records(raw: RawClient, number: int) -> list[Asked]:
    raw.send(_sent(batch(100, 1)), 9)
    partitions = [delete_records.DeleteRecordsPartition(index, -1) for index in _EVERYTHING]
    topics = [delete_records.DeleteRecordsTopic(WIDE, partitions)]
    return [[(delete_records.DeleteRecordsRequest(topics, 30_000), 2)]]


@occasion("a transaction of 5,000 partitions")
def _transaction(raw: RawClient, number: int) -> list[Asked]:
    name = f"producer-{number}"
    producer = RawProducer(raw, name, 1)
    assert producer.init() == ErrorCode.NONE
    who = producer.producer_id, producer.producer_epoch
    now_ms = time.time_ns() // 1_000_000
    records = build_batch(
        [Record(0, now_ms, None, bytes(100), ())],
        producer_id=who[0],
        producer_epoch=who[1],
        base_sequence=0,
        is_transactional=True,
    )
    added = add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=who[0],
        v3_and_below_producer_epoch=who[1],
        v3_and_below_topics=[add_partitions_to_txn.AddPartitionsToTxnTopic(WIDE, list(_EVERYTHING))],
    )
    return [[(added, 3), (_sent(records, name), 9), (end_txn.EndTxnRequest(name, *who, committed=True), 3)]]


@occasion("1,000 groups are listed, described and deleted")
def _groups(raw: RawClient, number: int) -> list[Asked]:
    names = [f"group-{number}-{each}" for each in range(GROUPS)]
    committed = [offset_commit.OffsetCommitRequestPartition(0, 1, -1, "")]
    for name in names:
        topics = [offset_commit.OffsetCommitRequestTopic(WIDE, partitions=committed)]
        raw.send(offset_commit.OffsetCommitRequest(name, topics=topics), 9)
    return [
        [
            (list_groups.ListGroupsRequest(), 5),
            (describe_groups.DescribeGroupsRequest(names), 5),
            (delete_groups.DeleteGroupsRequest(names), 2),
        ]
    ]


@occasion("500 members join a group")
def _members(raw: RawClient, number: int) -> list[Asked]:
    name = f"members-{number}"
    wait_for_coordinator(raw, name)
    protocols = [join_group.JoinGroupRequestProtocol("range", subscription(WIDE))]
    return [
        [
            (
                join_group.JoinGroupRequest(
                    name,
                    session_timeout_ms=30_000,
                    rebalance_timeout_ms=30_000,
                    group_instance_id=f"member-{each}",
                    protocol_type="consumer",
                    protocols=protocols,
                ),
                9,
            )
        ]
        for each in range(MEMBERS)
    ]


@occasion("10 clients send 1,000 requests each without waiting")
def _flood(raw: RawClient, number: int) -> list[Asked]:
    """Each from a producer that the broker has not seen before."""
    now_ms = time.time_ns() // 1_000_000
    first = 1_000_000 + number * 10 * FLOOD
    return [
        [
            (
                produce.ProduceRequest(
                    acks=-1,
                    timeout_ms=30_000,
                    topic_data=[
                        produce.TopicProduceData(
                            _MADE_BEFORE[0],
                            partition_data=[
                                produce.PartitionProduceData(
                                    0,
                                    build_batch(
                                        [Record(0, now_ms, None, bytes(100), ())],
                                        producer_id=first + client * FLOOD + each,
                                        producer_epoch=0,
                                        base_sequence=0,
                                    ),
                                )
                            ],
                        )
                    ],
                ),
                9,
            )
            for each in range(FLOOD)
        ]
        for client in range(10)
    ]
