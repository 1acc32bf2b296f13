"""Verified transactions: what may begin one in a partition, and what ends the permission (KIP-890)."""

from pathlib import Path

import pytest

from ottla.log_store.appends import AppendResult
from ottla.log_store.log import Log
from ottla.log_store.validation import AppendOrigin, prepare_client_batch
from ottla.log_store.verification import Verification
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.control import ControlType, build_end_txn_marker
from tests.log_store.batches import NOW_MS, append, new_log, producer_batch

PRODUCER_ID = 7


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return new_log(tmp_path)


def start(log: Log, sequence: int = 0, epoch: int = 0, *, bump: bool = False) -> Verification | None:
    return log.producers.start_verification(
        PRODUCER_ID, epoch, sequence, supports_epoch_bump=bump, now_ms=NOW_MS
    )


def write(
    log: Log, verification: Verification | None, sequence: int = 0, epoch: int = 0, *, in_txn: bool = True
) -> AppendResult:
    data = producer_batch(sequence=sequence, epoch=epoch, is_transactional=in_txn)
    result = log.append_prepared(prepare_client_batch(data, log.rules, NOW_MS), 0, NOW_MS, verification)
    log.advance_high_watermark(log.log_end_offset)
    return result


def end(log: Log, epoch: int = 0, version: int = 0) -> None:
    marker = build_end_txn_marker(
        ControlType.ABORT,
        timestamp=NOW_MS,
        producer_id=PRODUCER_ID,
        producer_epoch=epoch,
        coordinator_epoch=0,
    )
    append(
        log,
        memoryview(bytearray(marker)),
        origin=AppendOrigin.COORDINATOR,
        transaction_version=version,
    )


def code_of(log: Log, *args: object, **options: object) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        write(log, *args, **options)  # type: ignore[arg-type]
    return refused.value.code


def test_only_the_first_batch_needs_it(log: Log) -> None:
    """Without one it is refused; those that follow in the same transaction need none, nor does one that repeats."""
    assert code_of(log, None) is ErrorCode.INVALID_TXN_STATE
    write(log, start(log))
    assert start(log, 1) is None
    write(log, None, 1)
    assert write(log, None).duplicate
    assert code_of(log, None, 2, in_txn=False) is ErrorCode.INVALID_TXN_STATE


def test_marker_ends_it(log: Log) -> None:
    """A batch that was verified before the marker of its transaction must not begin a new one that nobody ends."""
    stale = start(log)
    end(log)
    assert code_of(log, stale) is ErrorCode.INVALID_TXN_STATE
    fresh = start(log)
    assert fresh is not stale
    assert code_of(log, stale) is ErrorCode.INVALID_TXN_STATE
    write(log, fresh)
    end(log)
    assert code_of(log, None, 1) is ErrorCode.INVALID_TXN_STATE
    write(log, start(log, 1), 1)


def test_next_transaction_of_version_two(log: Log) -> None:
    """The marker carries the epoch of the next transaction; a verification that has it belongs to that one."""
    write(log, start(log, bump=True))
    following = start(log, epoch=1, bump=True)
    end(log, epoch=1, version=2)
    write(log, following, 0, 1)
    late = start(log, epoch=2, bump=True)
    end(log, epoch=3, version=2)
    assert code_of(log, late, 0, 2) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_old_epochs(log: Log) -> None:
    """A fenced producer is told so before anybody is asked, and when its batch comes."""
    write(log, start(log, epoch=5), epoch=5)
    with pytest.raises(KafkaError) as refused:
        start(log, 1, 4)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert code_of(log, None, 1, 4) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_newer_epoch_while_the_transaction_is_open(log: Log) -> None:
    """Its transaction may have ended elsewhere, so it is verified; the batch goes on where the open one began."""
    write(log, start(log))
    verification = start(log, epoch=1)
    assert verification is not None
    assert code_of(log, None, 0, 1) is ErrorCode.INVALID_TXN_STATE
    write(log, verification, 0, 1)
    assert log.last_stable_offset == 0
    assert not log.producers.verifications


def test_lowest_sequence_goes_first(log: Log) -> None:
    """When the first batch could not be verified, the ones behind it wait for it; a new epoch begins anew."""
    verification = start(log, 4)
    assert start(log, 9) is verification
    assert code_of(log, verification, 9) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert start(log, 2) is verification
    assert code_of(log, verification, 4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert start(log, 7, 1) is verification
    write(log, verification, 7, 1)


def test_version_two_begins_at_zero(log: Log) -> None:
    """A producer of which nothing is known, or whose epoch is new, cannot have written before."""
    assert code_of(log, start(log, 3, bump=True), 3) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, start(log, 0, bump=True))
    end(log, epoch=1, version=2)
    assert code_of(log, start(log, 1, 1, bump=True), 1, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, start(log, 0, 1, bump=True), 0, 1)


def test_expiry(log: Log) -> None:
    """Verifications that led to nothing are forgotten with the producers."""
    verification = start(log)
    log.producers.remove_expired(NOW_MS + log.producers.expiration_ms - 1)
    assert start(log) is verification
    log.producers.remove_expired(NOW_MS + log.producers.expiration_ms)
    assert code_of(log, verification) is ErrorCode.INVALID_TXN_STATE
