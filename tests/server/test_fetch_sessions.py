"""Incremental fetch sessions (KIP-227), without a broker."""

import itertools

import pytest

from ottla.server import fetch_sessions
from ottla.server.fetch_sessions import FetchedPartition, FetchSessionCache
from ottla.wire.errors import ErrorCode, KafkaError

EVICTION_MS = 120_000


def wanted(partition: int, offset: int = 0, topic: str = "t") -> FetchedPartition:
    return FetchedPartition(topic, partition, offset, 1000, -1, -1)


@pytest.fixture
def cache() -> FetchSessionCache:
    return FetchSessionCache(2, EVICTION_MS, itertools.count(1).__next__)


def test_a_sessionless_fetch_leaves_no_session(cache: FetchSessionCache) -> None:
    """Epoch -1 reads what it names and is forgotten."""
    plan = cache.plan(0, -1, [wanted(0)], [], False, 0)
    assert (plan.session_id, len(plan.partitions), len(cache)) == (0, 1, 0)


def test_an_initial_fetch_opens_a_session_and_later_ones_need_not_name_partitions(
    cache: FetchSessionCache,
) -> None:
    """Epoch 0 opens; epoch 1 names nothing and reads everything."""
    opened = cache.plan(0, 0, [wanted(0), wanted(1)], [], False, 0)
    assert opened.session_id == 1
    assert not opened.incremental
    again = cache.plan(1, 1, [], [], False, 1)
    assert again.incremental
    assert [partition.partition for partition in again.partitions] == [0, 1]


def test_named_partitions_are_moved_and_forgotten_ones_dropped(cache: FetchSessionCache) -> None:
    """An incremental request changes positions, adds and removes."""
    cache.plan(0, 0, [wanted(0), wanted(1)], [], False, 0)
    plan = cache.plan(1, 1, [wanted(1, offset=7), wanted(2)], [("t", 0)], False, 0)
    assert [(each.partition, each.fetch_offset) for each in plan.partitions] == [(1, 7), (2, 0)]


def test_a_session_left_without_partitions_is_closed(cache: FetchSessionCache) -> None:
    """Forgetting everything ends the session and answers with session 0."""
    cache.plan(0, 0, [wanted(0)], [], False, 0)
    plan = cache.plan(1, 1, [], [("t", 0)], False, 0)
    assert (plan.session_id, plan.partitions, len(cache)) == (0, [], 0)


@pytest.mark.parametrize(
    ("session_id", "epoch", "uses_topic_ids", "code"),
    [
        (99, 1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (1, 2, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, 1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_request_that_does_not_fit_its_session_is_refused(
    cache: FetchSessionCache, session_id: int, epoch: int, uses_topic_ids: bool, code: ErrorCode
) -> None:
    """Unknown ids, other epochs, and a change between names and ids."""
    cache.plan(0, 0, [wanted(0)], [], False, 0)
    with pytest.raises(KafkaError) as raised:
        cache.plan(session_id, epoch, [], [], uses_topic_ids, 0)
    assert raised.value.code == code


def test_epoch_zero_with_an_id_replaces_that_session(cache: FetchSessionCache) -> None:
    """A client that starts over gives its old session back."""
    cache.plan(0, 0, [wanted(0)], [], False, 0)
    assert cache.plan(1, 0, [wanted(0)], [], False, 0).session_id == 2
    assert len(cache) == 1


def test_the_epoch_wraps_to_one(cache: FetchSessionCache) -> None:
    """After the largest epoch comes 1, since 0 means a new session."""
    opened = cache.plan(0, 0, [wanted(0)], [], False, 0)
    assert opened.session is not None
    opened.session.epoch = 2**31 - 1
    cache.plan(1, 2**31 - 1, [], [], False, 0)
    assert opened.session.epoch == 1


def test_a_full_cache_serves_without_a_session(cache: FetchSessionCache) -> None:
    """Nobody is evicted before the eviction time."""
    for _ in range(2):
        cache.plan(0, 0, [wanted(0)], [], False, 0)
    plan = cache.plan(0, 0, [wanted(0), wanted(1)], [], False, 1)
    assert (plan.session_id, len(plan.partitions)) == (0, 2)


def test_a_full_cache_drops_the_session_unused_for_the_eviction_time(cache: FetchSessionCache) -> None:
    """The least recently used goes first."""
    cache.plan(0, 0, [wanted(0)], [], False, 0)
    cache.plan(0, 0, [wanted(0)], [], False, 0)
    cache.plan(1, 1, [], [], False, EVICTION_MS)
    assert cache.plan(0, 0, [wanted(0)], [], False, EVICTION_MS + 1).session_id == 3
    with pytest.raises(KafkaError):
        cache.plan(2, 1, [], [], False, EVICTION_MS + 1)


def test_a_larger_session_displaces_a_smaller_one_that_had_its_time(cache: FetchSessionCache) -> None:
    """Sessions save the more, the more partitions they have."""
    for _ in range(2):
        cache.plan(0, 0, [wanted(0)], [], False, 0)
    for session_id in (1, 2):
        cache.plan(session_id, 1, [], [], False, EVICTION_MS)
    plan = cache.plan(0, 0, [wanted(0), wanted(1)], [], False, EVICTION_MS + 1)
    assert plan.session_id == 3


def test_an_incremental_answer_names_only_partitions_with_news() -> None:
    """Records, errors and moved watermarks are news; the same again is not; recovery from an error is."""
    partition = wanted(0)
    assert partition.has_news(0, False, 5, 0)
    assert not partition.has_news(0, False, 5, 0)
    assert partition.has_news(0, True, 5, 0)
    assert partition.has_news(0, False, 5, 1)
    assert partition.has_news(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False, -1, -1)
    assert partition.has_news(0, False, 5, 1)


def test_a_partition_that_got_data_goes_to_the_end(cache: FetchSessionCache) -> None:
    """With a small max_bytes every partition has its turn."""
    opened = cache.plan(0, 0, [wanted(0), wanted(1), wanted(2)], [], False, 0)
    assert opened.session is not None
    opened.session.move_to_end(("t", 0))
    plan = cache.plan(1, 1, [], [], False, 0)
    assert [partition.partition for partition in plan.partitions] == [1, 2, 0]


def test_partitions_of_all_sessions_are_bounded(
    cache: FetchSessionCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More are served without a session, or close the one that grew; what leaves makes room again."""
    monkeypatch.setattr(fetch_sessions, "MAX_CACHED_PARTITIONS", 4)
    three = [wanted(number) for number in range(3)]
    assert cache.plan(0, 0, three, [], False, 0).session_id == 1
    assert cache.plan(0, 0, three[:2], [], False, 0).session_id == 0
    assert cache.plan(0, 0, three[:1], [], False, 0).session_id == 2
    grown = cache.plan(1, 1, [wanted(7)], [], False, 0)
    assert (grown.session_id, len(grown.partitions), len(cache)) == (0, 4, 1)
    assert cache.plan(0, 0, three, [], False, 0).session_id == 3
    cache.plan(3, 1, [], [("t", 0), ("t", 1)], False, 0)
    later = 2 * EVICTION_MS
    assert cache.plan(0, 0, three, [], False, later).session_id == 4, "an old one had to go"
