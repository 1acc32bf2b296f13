"""What the coordinator says to a request: an answer, and what has to be in the log before it may leave."""

from __future__ import annotations

from typing import NamedTuple

from ottla.txn_coordinator.records import TransactionLogValue
from ottla.txn_coordinator.transaction import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.wire.errors import ErrorCode


class Answer(NamedTuple):
    """An error, or the producer id and epoch to go on with where the request asks for them."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class Decision(NamedTuple):
    """Append the record, apply it, then answer.

    A record that says PREPARE_COMMIT or PREPARE_ABORT asks for markers in the partitions of the transaction; when they
    are written, `TransactionShard.complete` gives the last record. The answer need not wait for that.
    """

    answer: Answer
    value: TransactionLogValue | None = None
    last_producer_epoch: int = NO_PRODUCER_EPOCH


SUCCESS = Answer(ErrorCode.NONE)


def refuse(error: ErrorCode) -> Decision:
    """Answer with an error and change nothing."""
    return Decision(Answer(error))
