"""Producer ids and epochs: who gets which, when they run out, and when there is none to be had."""

import pytest

from ottla.txn_coordinator.decision import Answer
from ottla.txn_coordinator.records import TransactionLogValue, TransactionRecord
from ottla.txn_coordinator.state import COMPLETE_ABORT, COMPLETE_COMMIT, EMPTY, ONGOING
from ottla.wire.errors import ErrorCode
from tests.txn_coordinator.driver import ID, P0, P1, Driver, Marker

NONE = ErrorCode.NONE


def worn(epoch: int, version: int = 2) -> tuple[Driver, Answer]:
    """A shard whose id is at this epoch, and its producer."""
    driver = Driver(version)
    driver.init()
    value = TransactionLogValue(
        producer_id=100,
        producer_epoch=epoch,
        transaction_timeout_ms=60_000,
        transaction_last_update_timestamp_ms=driver.now_ms,
        transaction_start_timestamp_ms=-1,
        transaction_partitions=None,
    )
    driver.append(TransactionRecord(ID, value))
    return driver, Answer(NONE, 100, epoch)


def test_starts_use_up_the_epochs_of_an_id() -> None:
    """The last usable epoch is given out; the next start gets a new id."""
    driver, _ = worn(32_765)
    assert driver.init() == (NONE, 100, 32_766)
    assert driver.init() == (NONE, 101, 0)
    assert driver.transaction().previous_producer_id == 100


def test_going_on_over_a_new_id() -> None:
    """A repeat with the worn-out identity gets the new one again, once it is known what it repeats."""
    driver, last = worn(32_766)
    answer = driver.init(100, 32_766)
    assert answer == (NONE, 101, 0)
    assert driver.init(100, 32_766) == answer
    assert driver.init(100, 32_765).error is ErrorCode.PRODUCER_FENCED
    assert driver.init(101, 0) == (NONE, 101, 1)
    assert driver.init(100, 32_766).error is ErrorCode.PRODUCER_FENCED
    assert driver.add(last, P0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("committed", [True, False])
def test_an_end_that_wears_out_the_epochs(committed: bool) -> None:
    """The markers go by the old id at its highest epoch; the producer goes on with a new one, also if it asks twice."""
    driver, producer = worn(32_766)
    assert driver.add(producer, P0, P1) is NONE
    answer = driver.end(producer, committed=committed)
    assert answer == (NONE, 101, 0)
    assert driver.markers == [Marker(partition, 100, 32_767, committed) for partition in (P0, P1)]
    transaction = driver.transaction()
    assert (transaction.producer_id, transaction.producer_epoch) == (101, 0)
    assert (transaction.previous_producer_id, transaction.next_producer_id) == (100, -1)
    assert driver.end(producer, committed=committed) == answer
    assert driver.end(producer, committed=not committed).error is ErrorCode.INVALID_TXN_STATE
    assert driver.add(answer, P0) is NONE


def test_an_end_over_a_new_id_survives_a_restart() -> None:
    """The id that follows is in the log before the markers are."""
    driver, producer = worn(32_766)
    driver.add(producer, P0)
    driver.unreachable = {P0}
    answer = driver.end(producer)
    assert driver.add(answer, P1) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.end(producer).error is ErrorCode.CONCURRENT_TRANSACTIONS
    driver.restart()
    driver.unreachable = set()
    driver.finish()
    assert driver.transaction().producer_id == answer.producer_id == 101
    assert driver.end(producer) == answer


@pytest.mark.parametrize(("version", "expected"), [(1, (101, 0)), (2, (101, 1))])
def test_fencing_uses_the_highest_epoch(version: int, expected: tuple[int, int]) -> None:
    """No producer ever has it, so that even the last one can be fenced."""
    driver, producer = worn(32_766, version)
    driver.add(producer, P0, client=version)
    assert driver.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.markers == [Marker(P0, 100, 32_767, False)]
    assert driver.init()[1:] == expected


def test_without_producer_ids_clients_ask_again() -> None:
    """Nothing is written until the controller has given a block of them."""
    driver = Driver()
    driver.has_producer_ids = False
    assert driver.init().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert driver.log == []
    driver, producer = worn(32_766)
    driver.add(producer, P0)
    length = len(driver.log)
    driver.has_producer_ids = False
    assert driver.end(producer).error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert driver.init().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    driver.let_time_pass(60_001)
    assert len(driver.log) == length
    driver.has_producer_ids = True
    driver.let_time_pass(1)
    assert driver.transaction().state is COMPLETE_ABORT


def test_the_last_epoch_is_not_in_the_log() -> None:
    """After a restart a repeated request to go on is fenced, as in Kafka; whoever has the answer goes on."""
    driver = Driver()
    first = driver.init()
    second = driver.init(*first[1:])
    assert driver.init(*first[1:]) == second
    driver.restart()
    assert driver.init(*first[1:]).error is ErrorCode.PRODUCER_FENCED
    assert driver.init(*second[1:]).producer_epoch == second.producer_epoch + 1


@pytest.mark.parametrize("version", [0, 1, 2])
def test_time_outs_fence(version: int) -> None:
    """The markers have the bumped epoch, the old producer is fenced, and a new one gets the epoch above."""
    driver = Driver(version)
    producer = driver.init(timeout_ms=1000)
    driver.add(producer, P0, client=version)
    driver.let_time_pass(1000)
    assert driver.transaction().state is ONGOING
    driver.let_time_pass(1)
    assert driver.markers == [Marker(P0, 100, 1, False)]
    assert driver.transaction().state is COMPLETE_ABORT
    assert driver.add(producer, P0) is ErrorCode.PRODUCER_FENCED
    assert driver.end(producer, client=0).error is ErrorCode.PRODUCER_FENCED
    going_on = driver.init(*producer[1:])
    assert going_on.error is (NONE if version == 2 else ErrorCode.PRODUCER_FENCED)
    assert driver.init().producer_epoch == 2


def test_records_of_each_level() -> None:
    """Below level 1 the log has nothing that an old Kafka could not read, and transactions V2 are not entered."""
    driver = Driver(0)
    producer = driver.init()
    driver.add(producer, P0, client=2)
    answer = driver.end(producer, client=2)
    assert answer == (NONE, -1, -1)
    assert {value[:2] for _, value in driver.log if value is not None} == {b"\0\0"}
    assert driver.transaction().producer_epoch == 0
    driver.version = 2
    assert driver.init().producer_epoch == 1
    assert (driver.log[-1][1] or b"")[:2] == b"\0\1"


def test_unused_ids_expire() -> None:
    """At rest and untouched for long enough; an open transaction keeps its id."""
    driver = Driver()
    ids = ["empty", "committed", "open"]
    producers = {each: driver.init(timeout_ms=900_000, transactional_id=each) for each in ids}
    for each in ids[1:]:
        driver.add(producers[each], P0, transactional_id=each)
    driver.end(producers["committed"], transactional_id="committed")
    assert driver.transaction("committed").state is COMPLETE_COMMIT
    driver.let_time_pass(999)
    driver.expire(1000)
    assert list(driver.shard.transactions) == ids
    driver.let_time_pass(1)
    driver.expire(1000)
    assert list(driver.shard.transactions) == list(driver.replayed().transactions) == ["open"]
    assert driver.init(transactional_id="empty") == (NONE, 103, 0)
    assert driver.transaction("empty").state is EMPTY
