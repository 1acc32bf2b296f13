"""Share partitions: case by case, and random histories that keep their promises."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.group_coordinator.share_partition.acknowledge import (
    Acknowledgement,
    LockRules,
    acknowledge,
    release_member,
    release_overdue,
)
from ottla.group_coordinator.share_partition.acquire import Acquisition, BatchRange, acquire, archive_aborted
from ottla.group_coordinator.share_partition.partition import SharePartition, StateBatch, state_batches
from ottla.group_coordinator.share_partition.runs import RecordState, Run
from ottla.wire.errors import ErrorCode, KafkaError

LIMIT = 5
RULES = LockRules(LIMIT, 9_000, True)


def wanted(member: str = "m", max_records: int = 500, **changed: object) -> Acquisition:
    fields: dict[str, object] = {
        "member_id": member,
        "max_records": max_records,
        "batch_size": 500,
        "record_limit": False,
        "locked_until_ms": 1_000,
        "max_record_locks": 2_000,
        "delivery_count_limit": LIMIT,
    }
    return Acquisition(**{**fields, **changed})  # type: ignore[arg-type]


def batches(*ranges: tuple[int, int]) -> list[BatchRange]:
    return [BatchRange(*each) for each in ranges]


def spans(runs: list[Run]) -> list[tuple[int, int, int]]:
    return [(run.first, run.last, run.delivery_count) for run in runs]


def test_whole_batches_unless_the_limit_counts() -> None:
    """The last batch is given whole; a strict limit cuts it."""
    log = batches((0, 9), (10, 19), (20, 29))
    assert spans(acquire(SharePartition(0), wanted(max_records=12), log)) == [(0, 19, 1)]
    assert spans(acquire(SharePartition(0), wanted(max_records=12, record_limit=True), log)) == [(0, 11, 1)]
    assert spans(acquire(SharePartition(0), wanted(batch_size=10), log)) == [
        (0, 9, 1),
        (10, 19, 1),
        (20, 29, 1),
    ]


def test_a_strict_limit_leaves_the_rest_of_a_batch_in_flight() -> None:
    """Nobody has it yet, and it is the next to be given."""
    partition = SharePartition(0)
    acquire(partition, wanted(max_records=4, record_limit=True), batches((0, 9)))
    assert (partition.next_offset, partition.fetch_offset) == (10, 4)
    assert spans(acquire(partition, wanted(), batches((0, 9), (10, 12)))) == [(4, 9, 1), (10, 12, 1)]


def test_records_of_a_batch_come_together_again() -> None:
    """What fared differently is given in as few runs as can be; a batch is given whole, whatever was asked for."""
    partition = SharePartition(0)
    acquire(partition, wanted(batch_size=10), batches((0, 9), (10, 19)))
    for offset in range(10):
        acknowledge(partition, "m", [Acknowledgement(offset, offset, [1 if offset == 3 else 2])], RULES)
    acknowledge(partition, "m", [Acknowledgement(10, 19, [2])], RULES)
    assert spans(acquire(partition, wanted(max_records=1), batches((0, 19)))) == [(0, 2, 2), (4, 9, 2)]
    assert len(partition.runs) == 4
    assert spans(acquire(partition, wanted(max_records=1), batches((0, 19)))) == [(10, 19, 2)]


def test_a_batch_is_spoken_of_as_a_whole_until_it_is_split() -> None:
    """The words for what cannot be acknowledged."""
    partition = SharePartition(0)
    acquire(partition, wanted(), batches((0, 9)))

    def refusal(member: str) -> str:
        with pytest.raises(KafkaError) as refused:
            acknowledge(partition, member, [Acknowledgement(0, 9, [1])], RULES)
        return str(refused.value.detail)

    assert refusal("other") == "Member is not the owner of batch record"
    acknowledge(partition, "m", [Acknowledgement(5, 5, [2])], RULES)
    assert refusal("other") == "Member is not the owner of offset"
    assert refusal("m") == "The offset cannot be acknowledged. The offset is not acquired."
    whole = SharePartition(0, [StateBatch(0, 9, 0, 1)])
    with pytest.raises(KafkaError) as refused:
        acknowledge(whole, "m", [Acknowledgement(0, 9, [1])], RULES)
    assert refused.value.detail == "The batch cannot be acknowledged. The batch is not in the acquired state."


def test_no_more_than_the_locks_allow() -> None:
    """What is in flight counts; what is available again in between may always be given."""
    partition = SharePartition(0)
    assert spans(acquire(partition, wanted(max_record_locks=100), batches((0, 99)))) == [(0, 99, 1)]
    assert acquire(partition, wanted(max_record_locks=100), batches((100, 109))) == []
    acknowledge(partition, "m", [Acknowledgement(50, 59, [2])], RULES)
    again = acquire(partition, wanted("n", max_record_locks=100), batches((50, 109)))
    assert spans(again) == [(50, 59, 2)]


def test_records_that_are_gone() -> None:
    """What the log lost is archived, in front of what was read and in front of its start."""
    partition = SharePartition(0)
    acquire(partition, wanted(), batches((0, 9)))
    release_member(partition, "m", LIMIT)
    assert spans(acquire(partition, wanted(), batches((5, 14)))) == [(5, 9, 2), (10, 14, 1)]
    assert partition.start_offset == 5
    partition.start_at(12)
    assert (partition.start_offset, spans(partition.runs)) == (12, [(12, 14, 1)])
    acknowledge(partition, "m", [Acknowledgement(5, 14, [1])], RULES)
    partition.settle()
    assert (partition.start_offset, partition.next_offset, partition.runs) == (15, 15, [])
    assert spans(acquire(partition, wanted(), batches((30, 31)))) == [(30, 31, 1)]
    assert partition.start_offset == 30


def test_aborted_records_are_not_given() -> None:
    """They are archived; the rest of what was acquired stays so."""
    partition = SharePartition(0)
    runs = acquire(partition, wanted(), batches((0, 3), (4, 7), (8, 9)))
    assert spans(archive_aborted(partition, runs, batches((4, 7)))) == [(0, 3, 1), (8, 9, 1)]
    assert partition.delivery_complete_count == 4


def test_acknowledgements_that_are_refused_change_nothing() -> None:
    """All of a request counts, or none of it."""
    partition = SharePartition(0)
    acquire(partition, wanted(), batches((0, 9)))
    before = spans(partition.runs)
    for code, member, acks in (
        (ErrorCode.INVALID_RECORD_STATE, "other", [Acknowledgement(0, 1, [1])]),
        (ErrorCode.INVALID_REQUEST, "m", [Acknowledgement(0, 1, [1]), Acknowledgement(9, 10, [1])]),
        (ErrorCode.INVALID_REQUEST, "m", [Acknowledgement(10, 11, [1])]),
        (ErrorCode.INVALID_RECORD_STATE, "m", [Acknowledgement(0, 3, [1]), Acknowledgement(3, 4, [1])]),
    ):
        with pytest.raises(KafkaError) as refused:
            acknowledge(partition, member, acks, RULES)
        assert refused.value.code == code
        assert spans(partition.runs) == before
    with pytest.raises(KafkaError):
        acknowledge(partition, "m", [Acknowledgement(0, 1, [4])], RULES._replace(renew_enabled=False))
    assert acknowledge(SharePartition(5), "m", [Acknowledgement(0, 4, [1])], RULES) == []


def test_locks_run_out_and_are_renewed() -> None:
    """Only what is overdue comes back; after too many deliveries it does not."""
    partition = SharePartition(0)
    acquire(partition, wanted(locked_until_ms=100), batches((0, 9)))
    acknowledge(partition, "m", [Acknowledgement(4, 9, [4])], RULES)
    assert partition.next_lock_ends_ms == 100
    assert release_overdue(partition, 99, LIMIT) == []
    assert spans(release_overdue(partition, 100, LIMIT)) == [(0, 3, 1)]
    assert (partition.fetch_offset, partition.next_lock_ends_ms) == (0, 9_000)
    for count in range(2, LIMIT + 1):
        (run, *_) = acquire(partition, wanted(record_limit=True, max_records=1), batches((0, 9)))
        assert (run.first, run.delivery_count) == (0, count)
        release_overdue(partition, 1_000, LIMIT)
    assert partition.runs[0].state is RecordState.ARCHIVED


def test_state_that_was_kept() -> None:
    """What was acquired and not acknowledged is available as if never delivered; what is done moves the start."""
    kept = [StateBatch(0, 4, 2, 1), StateBatch(8, 9, 0, 2), StateBatch(12, 12, 4, 5)]
    partition = SharePartition(0, kept)
    assert (partition.start_offset, partition.next_offset) == (5, 13)
    assert [(run.first, run.last, run.state, run.delivery_count) for run in partition.runs] == [
        (5, 7, 0, 0),
        (8, 9, 0, 2),
        (10, 11, 0, 0),
        (12, 12, 4, 5),
    ]


@given(st.integers(0, 2**32), st.integers(2, 6))
def test_random_histories(seed: int, limit: int) -> None:
    """Runs cover what is in flight, nobody shares a record, counts stay in the limit, the start never goes back, and
    everything is delivered or given up in the end."""
    rng = random.Random(seed)
    log = []
    end = 0
    for _ in range(rng.randint(1, 8)):
        size = rng.randint(1, 6)
        log.append(BatchRange(end, end + size - 1))
        end += size
    partition = SharePartition(0)
    kept: list[StateBatch] = []
    deliveries = dict.fromkeys(range(end), 0)
    start = 0
    rules = LockRules(limit, 10_000, True)
    for step in range(60):
        member = rng.choice("ab")
        changed: list[Run] = []
        action = rng.random()
        if action < 0.5:
            readable = [each for each in log if each.last_offset >= partition.fetch_offset]
            ask = wanted(
                member,
                rng.randint(1, 8),
                record_limit=rng.random() < 0.5,
                batch_size=rng.randint(1, 6),
                locked_until_ms=step + rng.randint(1, 9),
                delivery_count_limit=limit,
                max_record_locks=rng.randint(5, 50),
            )
            for run in acquire(partition, ask, readable):
                assert run.member_id == member
                for offset in range(run.first, run.last + 1):
                    deliveries[offset] += 1
                    assert run.delivery_count == deliveries[offset]
        elif action < 0.8:
            mine = [run for run in partition.runs if run.member_id == member]
            if mine:
                run = rng.choice(mine)
                types = [rng.randint(0, 3) for _ in range(len(run))]
                changed = acknowledge(partition, member, [Acknowledgement(run.first, run.last, types)], rules)
        elif action < 0.9:
            changed = release_overdue(partition, step, limit)
        else:
            changed = release_member(partition, member, limit)
        kept += state_batches(changed)
        partition.settle()
        assert partition.start_offset >= start
        start = expected = partition.start_offset
        for run in partition.runs:
            assert (run.first, bool(run.member_id)) == (expected, run.state is RecordState.ACQUIRED)
            assert run.delivery_count <= limit
            expected = run.last + 1
        assert expected == partition.next_offset <= end
    for _ in range(end * limit * 2):
        for run in acquire(
            partition, wanted(), [each for each in log if each.last_offset >= partition.fetch_offset]
        ):
            acknowledge(partition, "m", [Acknowledgement(run.first, run.last, [1])], rules)
        release_member(partition, "a", limit)
        release_member(partition, "b", limit)
        partition.settle()
    assert (partition.start_offset, partition.runs) == (end, [])
