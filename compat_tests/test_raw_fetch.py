"""Fetch in every version: what is read, within which limits, in which session, and what is refused."""

import threading
import time
from typing import Any

import pytest

from compat_tests.raw_client import RawClient, plain
from compat_tests.raw_topics import create_topic, produce
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from ottla.wire.records import iter_records
from ottla.wire.records.header import split_batches
from ottla.wire.uuids import ZERO_UUID

VERSIONS = range(FetchRequest.MIN_VERSION, FetchRequest.MAX_VERSION + 1)
BY_NAME = 12
BY_ID = 17
NOW_MS = time.time_ns() // 1_000_000


def partition(index: int = 0, offset: int = 0, max_bytes: int = 1 << 20, **more: Any) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes, **more)


def request(topic: str | bytes, *partitions: FetchPartition, **more: Any) -> FetchRequest:
    """A request for partitions of one topic, by name or by id; it does not wait unless told to."""
    named = FetchTopic(partitions=list(partitions))
    if isinstance(topic, str):
        named.topic = topic
    else:
        named.topic_id = topic
    return FetchRequest(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "topics": [named], **more})


def rows(response: FetchResponse) -> dict[int, Any]:
    """The answered partitions of the only topic, or of none."""
    return {each.partition_index: each for topic in response.responses for each in topic.partitions}


def offsets(row: Any) -> list[int]:
    """The offsets of all whole batches in an answer."""
    records = bytes(row.records or b"")
    whole = 0
    while len(records) - whole >= 12:
        size = 12 + int.from_bytes(records[whole + 8 : whole + 12], "big")
        if whole + size > len(records):
            break
        whole += size
    views = split_batches(memoryview(bytearray(records[:whole])))
    return [record.offset for view in views for record in iter_records(view)]


def error(row: Any) -> str:
    return ErrorCode(row.error_code).name


@pytest.mark.parametrize("version", VERSIONS)
def test_a_read_in_every_version(raw: RawClient, topic_name: str, version: int) -> None:
    """The answer has everything the version can say and nothing else."""
    topic_id = create_topic(raw, topic_name)
    produce(raw, topic_name, [NOW_MS, NOW_MS + 1])
    by_id = version >= 13
    response = plain(raw.send(request(topic_id if by_id else topic_name, partition()), version))
    records = response["responses"][0]["partitions"][0].pop("records")
    assert [record.offset for record in iter_records(split_batches(memoryview(bytearray(records)))[0])] == [
        0,
        1,
    ]
    unset = {"leader_id": -1, "leader_epoch": -1}
    assert response == {
        "throttle_time_ms": 0,
        "error_code": 0,
        "session_id": 0,
        "responses": [
            {
                "topic": "" if by_id else topic_name,
                "topic_id": topic_id if by_id else ZERO_UUID,
                "partitions": [
                    {
                        "partition_index": 0,
                        "error_code": 0,
                        "high_watermark": 2,
                        "last_stable_offset": 2,
                        "log_start_offset": 0 if version >= 5 else -1,
                        "diverging_epoch": {"epoch": -1, "end_offset": -1},
                        "current_leader": unset,
                        "snapshot_id": {"end_offset": -1, "epoch": -1},
                        "aborted_transactions": None,
                        "preferred_read_replica": -1,
                    }
                ],
            }
        ],
        "node_endpoints": [],
    }


def test_the_middle_of_a_batch_returns_the_whole_batch(raw: RawClient, topic_name: str) -> None:
    """Clients skip what they did not ask for."""
    create_topic(raw, topic_name)
    produce(raw, topic_name, [NOW_MS] * 5)
    produce(raw, topic_name, [NOW_MS] * 2)
    found = [
        offsets(rows(raw.send(request(topic_name, partition(offset=n)), BY_NAME))[0]) for n in (3, 4, 5, 6)
    ]
    assert found == [list(range(7)), list(range(7)), [5, 6], [5, 6]]


def test_at_least_one_batch_whatever_the_limits(raw: RawClient, topic_name: str) -> None:
    """A batch larger than every limit still comes, whole and alone; the next partition gets nothing."""
    create_topic(raw, topic_name, partitions=2)
    for index in (0, 1):
        produce(raw, topic_name, [NOW_MS] * 5, partition=index)
        produce(raw, topic_name, [NOW_MS] * 5, partition=index)
    response = raw.send(
        request(topic_name, partition(0, max_bytes=1), partition(1, max_bytes=1), max_bytes=1), BY_NAME
    )
    assert {index: offsets(row) for index, row in rows(response).items()} == {0: [0, 1, 2, 3, 4], 1: []}


def test_the_whole_response_is_bounded(raw: RawClient, topic_name: str) -> None:
    """max_bytes counts over all partitions."""
    create_topic(raw, topic_name, partitions=3)
    for index in range(3):
        produce(raw, topic_name, [NOW_MS] * 100, partition=index)
    one = len(rows(raw.send(request(topic_name, partition(0)), BY_NAME))[0].records)
    asked = request(topic_name, *(partition(index) for index in range(3)), max_bytes=2 * one)
    answered = rows(raw.send(asked, BY_NAME))
    assert [len(answered[index].records) for index in range(3)] == [one, one, 0]


def test_read_committed_names_no_aborted_transactions_when_there_are_none(
    raw: RawClient, topic_name: str
) -> None:
    """The list is empty, not null, and the last stable offset is the end."""
    create_topic(raw, topic_name)
    produce(raw, topic_name, [NOW_MS])
    row = rows(raw.send(request(topic_name, partition(), isolation_level=1), BY_NAME))[0]
    assert (row.aborted_transactions, row.last_stable_offset, offsets(row)) == ([], 1, [0])


@pytest.mark.parametrize("offset", [-1, 3, 2**62])
def test_offsets_out_of_range(raw: RawClient, topic_name: str, offset: int) -> None:
    """Nothing is known of the partition then."""
    create_topic(raw, topic_name)
    produce(raw, topic_name, [NOW_MS] * 2)
    row = rows(raw.send(request(topic_name, partition(offset=offset)), BY_NAME))[0]
    assert (
        error(row),
        row.high_watermark,
        row.last_stable_offset,
        row.log_start_offset,
        len(row.records),
    ) == (
        "OFFSET_OUT_OF_RANGE",
        -1,
        -1,
        -1,
        0,
    )


def test_the_end_of_the_log_is_empty_and_no_error(raw: RawClient, topic_name: str) -> None:
    """The next offset is where consumers wait."""
    create_topic(raw, topic_name)
    produce(raw, topic_name, [NOW_MS] * 2)
    row = rows(raw.send(request(topic_name, partition(offset=2)), BY_NAME))[0]
    assert (error(row), row.high_watermark, bytes(row.records)) == ("NONE", 2, b"")


def test_deleted_records_are_out_of_range(raw: RawClient, topic_name: str) -> None:
    """The log start moves, and is told."""
    create_topic(raw, topic_name)
    produce(raw, topic_name, [NOW_MS] * 2)
    produce(raw, topic_name, [NOW_MS] * 2)
    deleted = DeleteRecordsTopic(
        name=topic_name, partitions=[DeleteRecordsPartition(partition_index=0, offset=3)]
    )
    raw.send(DeleteRecordsRequest(topics=[deleted], timeout_ms=1000), 2)
    before = rows(raw.send(request(topic_name, partition(offset=2)), BY_NAME))[0]
    after = rows(raw.send(request(topic_name, partition(offset=3)), BY_NAME))[0]
    assert (error(before), error(after), after.log_start_offset, offsets(after)) == (
        "OFFSET_OUT_OF_RANGE",
        "NONE",
        3,
        [2, 3],
    )


@pytest.mark.parametrize(
    ("topic", "index", "version", "expected"),
    [
        ("no-such-topic", 0, BY_NAME, "UNKNOWN_TOPIC_OR_PARTITION"),
        (b"\x07" * 16, 0, BY_ID, "UNKNOWN_TOPIC_ID"),
        (None, 5, BY_NAME, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_partitions_that_are_not_there(
    raw: RawClient, topic_name: str, topic: str | bytes | None, index: int, version: int, expected: str
) -> None:
    """By name and by id, beside one that is there."""
    create_topic(raw, topic_name)
    row = rows(raw.send(request(topic_name if topic is None else topic, partition(index)), version))[index]
    assert error(row) == expected


@pytest.mark.parametrize(("epoch", "expected"), [(-1, "NONE"), (0, "NONE"), (50, "UNKNOWN_LEADER_EPOCH")])
def test_leader_epochs(raw: RawClient, topic_name: str, epoch: int, expected: str) -> None:
    """A client that knows of a later leader must wait for us to know it too."""
    create_topic(raw, topic_name)
    row = rows(raw.send(request(topic_name, partition(current_leader_epoch=epoch)), BY_NAME))[0]
    assert error(row) == expected


def test_a_client_that_pretends_to_be_a_replica(raw: RawClient, topic_name: str) -> None:
    """It is not one of the partition's replicas (CVE-2018-1288)."""
    topic_id = create_topic(raw, topic_name)
    produce(raw, topic_name, [NOW_MS])
    by_name = rows(raw.send(request(topic_name, partition(), replica_id=7), BY_NAME))[0]
    by_id = rows(raw.send(request(topic_id, partition(), replica_state=ReplicaState(replica_id=7)), BY_ID))[0]
    assert (error(by_name), error(by_id)) == ("NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_OR_FOLLOWER")


def test_a_waiting_fetch_is_woken_by_an_append_and_delays_nobody(
    raw: RawClient, bootstrap: str, topic_name: str
) -> None:
    """The waiting connection is answered with the new record, long before its time is up."""
    create_topic(raw, topic_name)
    answered: list[FetchResponse] = []

    def wait() -> None:
        with RawClient.to(bootstrap) as waiting:
            answered.append(waiting.send(request(topic_name, partition(), max_wait_ms=60_000), BY_NAME))

    waiter = threading.Thread(target=wait)
    waiter.start()
    for _ in range(20):
        assert error(rows(raw.send(request(topic_name, partition()), BY_NAME))[0]) == "NONE"
    produce(raw, topic_name, [NOW_MS])
    waiter.join(30)
    assert offsets(rows(answered[0])[0]) == [0]


def test_a_fetch_waits_for_min_bytes(raw: RawClient, bootstrap: str, topic_name: str) -> None:
    """One append is not enough; with the second one it is."""
    create_topic(raw, topic_name)
    produce(raw, topic_name, [NOW_MS])
    one = len(rows(raw.send(request(topic_name, partition()), BY_NAME))[0].records)
    answered: list[FetchResponse] = []

    def wait() -> None:
        with RawClient.to(bootstrap) as waiting:
            asked = request(topic_name, partition(), max_wait_ms=60_000, min_bytes=one + 1)
            answered.append(waiting.send(asked, BY_NAME))

    waiter = threading.Thread(target=wait)
    waiter.start()
    produce(raw, topic_name, [NOW_MS])
    waiter.join(30)
    assert offsets(rows(answered[0])[0]) == [0, 1]


def test_a_waiting_fetch_learns_that_its_topic_is_deleted(
    raw: RawClient, bootstrap: str, topic_name: str
) -> None:
    """It does not sleep through it."""
    create_topic(raw, topic_name)
    answered: list[FetchResponse] = []

    def wait() -> None:
        with RawClient.to(bootstrap) as waiting:
            answered.append(waiting.send(request(topic_name, partition(), max_wait_ms=20_000), BY_NAME))

    waiter = threading.Thread(target=wait)
    waiter.start()
    raw.send(DeleteTopicsRequest(topic_names=[topic_name], timeout_ms=5000), 4)
    waiter.join(60)
    assert error(rows(answered[0])[0]) in ("UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER")


def test_an_incremental_session(raw: RawClient, topic_name: str) -> None:
    """Only what is new comes back, until the session is closed."""
    topic_id = create_topic(raw, topic_name, partitions=2)
    produce(raw, topic_name, [NOW_MS], partition=0)
    opened = raw.send(request(topic_id, partition(0), partition(1), session_epoch=0), BY_ID)
    session = opened.session_id
    assert session != 0
    assert {index: offsets(row) for index, row in rows(opened).items()} == {0: [0], 1: []}

    moved = request(topic_id, partition(0, offset=1), session_id=session, session_epoch=1)
    nothing = raw.send(moved, BY_ID)
    assert (nothing.session_id, rows(nothing)) == (session, {})

    produce(raw, topic_name, [NOW_MS], partition=1)
    asked = FetchRequest(max_wait_ms=0, min_bytes=1, session_id=session, session_epoch=2)
    news = raw.send(asked, BY_ID)
    assert {index: offsets(row) for index, row in rows(news).items()} == {1: [0]}

    forgotten = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=session,
        session_epoch=3,
        forgotten_topics_data=[ForgottenTopic(topic_id=topic_id, partitions=[1])],
    )
    produce(raw, topic_name, [NOW_MS], partition=0)
    assert {index: offsets(row) for index, row in rows(raw.send(forgotten, BY_ID)).items()} == {0: [1]}

    closed = raw.send(FetchRequest(max_wait_ms=0, min_bytes=1, session_id=session, session_epoch=-1), BY_ID)
    assert (closed.session_id, closed.error_code, rows(closed)) == (0, 0, {})
    again = raw.send(FetchRequest(max_wait_ms=0, session_id=session, session_epoch=4), BY_ID)
    assert ErrorCode(again.error_code).name == "FETCH_SESSION_ID_NOT_FOUND"


def test_wrong_session_epochs(raw: RawClient, topic_name: str) -> None:
    """A client and a broker that disagree start over."""
    topic_id = create_topic(raw, topic_name)
    opened = raw.send(request(topic_id, partition(0), session_epoch=0), BY_ID)
    late = raw.send(FetchRequest(session_id=opened.session_id, session_epoch=5), BY_ID)
    unknown = raw.send(FetchRequest(session_id=12345, session_epoch=1), BY_ID)
    assert [ErrorCode(each.error_code).name for each in (late, unknown)] == [
        "INVALID_FETCH_SESSION_EPOCH",
        "FETCH_SESSION_ID_NOT_FOUND",
    ]


def test_an_answer_too_early_for_the_version(raw: RawClient, topic_name: str) -> None:
    """A session may not change between names and ids."""
    topic_id = create_topic(raw, topic_name)
    opened = raw.send(request(topic_id, partition(0), session_epoch=0), BY_ID)
    mixed = raw.send(FetchRequest(session_id=opened.session_id, session_epoch=1), BY_NAME)
    assert ErrorCode(mixed.error_code).name == "FETCH_SESSION_TOPIC_ID_ERROR"
