"""The requests of transactions on the raw client, each with the identity that a test wants, in any version."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from compat_tests.eventually import PATIENCE_SECONDS, PAUSE_SECONDS
from compat_tests.raw_client import RawClient
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

_NOT_YET = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class Identity(NamedTuple):
    """A producer id and epoch."""

    producer_id: int
    producer_epoch: int

    def before(self, epochs: int = 1) -> Identity:
        """The same producer some epochs ago."""
        return Identity(self.producer_id, self.producer_epoch - epochs)


def name_of(code: int) -> str:
    return ErrorCode(code).name


def when_ready(send: Callable[[], Any]) -> Any:
    """What clients do: ask again while the last transaction is being ended or the coordinator is not there yet."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    pause = threading.Event()
    answer = send()
    while ErrorCode(answer.error_code) in _NOT_YET and time.monotonic() < deadline:
        pause.wait(PAUSE_SECONDS)
        answer = send()
    return answer


class TransactionRequests:
    """One transactional id. Methods take the identity that the request shall carry."""

    def __init__(self, raw: RawClient, transactional_id: str) -> None:
        self.raw = raw
        self.transactional_id = transactional_id
        when_ready(
            lambda: raw.send(
                FindCoordinatorRequest(coordinator_keys=[transactional_id], key_type=1), 6
            ).coordinators[0]
        )

    def ask_init(self, version: int = 5, identity: Identity | None = None, timeout_ms: int = 60_000) -> Any:
        """InitProducerId, whatever the answer."""
        request = InitProducerIdRequest(self.transactional_id, timeout_ms, *(identity or ()))
        return self.raw.send(request, version)

    def init(self, version: int = 5, identity: Identity | None = None) -> Identity:
        """InitProducerId until it is answered with an identity."""
        answer = when_ready(lambda: self.ask_init(version, identity))
        assert name_of(answer.error_code) == "NONE"
        return Identity(answer.producer_id, answer.producer_epoch)

    def add(
        self, identity: Identity, topic: str, partitions: Sequence[int] = (0,), version: int = 3
    ) -> dict[int, str]:
        """AddPartitionsToTxn of one topic: the errors by partition."""
        (found,) = self.ask_add(identity, [AddPartitionsToTxnTopic(topic, list(partitions))], version)
        return {
            each.partition_index: name_of(each.partition_error_code) for each in found.results_by_partition
        }

    def ask_add(
        self,
        identity: Identity,
        topics: list[AddPartitionsToTxnTopic],
        version: int = 3,
        *,
        verify_only: bool = False,
    ) -> Any:
        """AddPartitionsToTxn: the answer's topics."""
        if version >= 4:
            wanted = AddPartitionsToTxnTransaction(self.transactional_id, *identity, verify_only, topics)
            answer = self.raw.send(AddPartitionsToTxnRequest(transactions=[wanted]), version)
            assert name_of(answer.error_code) == "NONE"
            (result,) = answer.results_by_transaction
            assert result.transactional_id == self.transactional_id
            return result.topic_results
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.producer_epoch,
            v3_and_below_topics=topics,
        )
        return self.raw.send(request, version).results_by_topic_v3_and_below

    def add_offsets(self, identity: Identity, group: str, version: int = 3) -> str:
        """AddOffsetsToTxn: the error."""
        request = AddOffsetsToTxnRequest(self.transactional_id, *identity, group)
        return name_of(self.raw.send(request, version).error_code)

    def end(self, identity: Identity, version: int = 4, *, commit: bool = True) -> str:
        """EndTxn: the error."""
        return name_of(self.ask_end(identity, version, commit=commit).error_code)

    def ask_end(self, identity: Identity, version: int = 5, *, commit: bool = True) -> Any:
        """EndTxn: the answer."""
        return self.raw.send(EndTxnRequest(self.transactional_id, *identity, commit), version)

    def describe(self) -> Any:
        """DescribeTransactions of this id."""
        (state,) = self.raw.send(DescribeTransactionsRequest([self.transactional_id]), 0).transaction_states
        return state

    def wait_ended(self) -> str:
        """Until no transaction is being ended; the state then."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        pause = threading.Event()
        while (state := self.describe().transaction_state).startswith("Prepare"):
            assert time.monotonic() < deadline, state
            pause.wait(PAUSE_SECONDS)
        found: str = state
        return found
