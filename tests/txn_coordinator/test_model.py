"""Transactions under any order of requests, repeats, failures, time-outs and restarts.

Producers of both kinds (V1, V2) share one transactional id; each believes what it was last told. Answers get lost
and requests are repeated, partitions refuse markers for a while, the coordinator restarts, transaction.version
changes, the epochs run out, the id expires. Whatever happens: only the newest producer can change anything, epochs
that producers are told never go back, the log alone gives the same state, every transaction has one outcome in all
its partitions, and it is the one its producer was told.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.txn_coordinator.decision import Answer
from ottla.txn_coordinator.records import TransactionLogValue, TransactionRecord, decode_record
from ottla.txn_coordinator.state import (
    AT_REST,
    COMPLETE_COMMIT,
    ENDING,
    MOVES,
    ONGOING,
    PREPARE_COMMIT,
    TransactionState,
)
from ottla.txn_coordinator.transaction import TopicPartition
from ottla.wire.errors import ErrorCode
from tests.txn_coordinator.driver import ID, P0, P1, P2, Driver, Marker, facts

producers = st.integers(0, 1)
losses = st.sampled_from([False, False, True])
partition_sets = st.sets(st.sampled_from([P0, P1, P2]), min_size=1)


class Producer:
    """What one client knows: who it is, what it has written, how it ended that if it has not heard of it."""

    def __init__(self, client_version: int) -> None:
        self.client_version = client_version
        self.identity: Answer | None = None
        self.unheard_end: bool | None = None
        self.added: set[TopicPartition] = set()

    def become(self, identity: Answer) -> None:
        """Go on with another identity and no transaction."""
        self.identity = identity
        self.unheard_end = None
        self.added = set()


class Watcher:
    """Follows records and markers: states move as they may, and a transaction ends the same way everywhere."""

    def __init__(self) -> None:
        self.seen = 0
        self.state: TransactionState | None = None
        self.producer_id = -1
        self.partitions: set[TopicPartition] = set()
        self.marked: set[TopicPartition] = set()
        self.last_outcome: bool | None = None

    def watch(self, events: list[TransactionRecord | Marker]) -> None:
        for event in events[self.seen :]:
            if isinstance(event, Marker):
                self._see_marker(event)
            elif event.value is None:
                assert self.state in AT_REST, "an id in use was forgotten"
                self.state = None
            else:
                self._see_record(event.value)
        self.seen = len(events)

    def _see_marker(self, marker: Marker) -> None:
        assert self.state in ENDING, "a marker without a decision"
        assert marker.committed is self.last_outcome
        assert marker.producer_id == self.producer_id
        assert marker.partition in self.partitions
        self.marked.add(marker.partition)

    def _see_record(self, value: TransactionLogValue) -> None:
        state = TransactionState(value.transaction_status)
        assert self.state is None or state is self.state or state in MOVES[self.state]
        if state in ENDING:
            self.last_outcome = state is PREPARE_COMMIT
            self.marked = set()
            self.producer_id = value.producer_id
            self.partitions = {
                (each.topic, index)
                for each in value.transaction_partitions or ()
                for index in each.partition_ids
            }
        elif self.state in ENDING:
            assert (state is COMPLETE_COMMIT) is self.last_outcome
            assert self.marked == self.partitions, "complete without all markers"
        self.state = state


class TransactionMachine(RuleBasedStateMachine):
    @initialize(level=st.integers(0, 2), versions=st.tuples(*[st.sampled_from([0, 2])] * 2))
    def start(self, level: int, versions: tuple[int, ...]) -> None:
        self.driver = Driver(level)
        self.producers = [Producer(version) for version in versions]
        self.newest: Producer | None = None
        self.highest = (-1, -1)
        self.watcher = Watcher()

    # Requests ----------------------------------------------------------------------------------------------

    @rule(which=producers, lost=losses)
    def begin(self, which: int, lost: bool) -> None:
        """A producer starts."""
        self.initialized(self.producers[which], self.driver.init(), lost)

    @rule(which=producers, lost=losses)
    def go_on(self, which: int, lost: bool) -> None:
        """A producer recovers from an error with the identity it has."""
        producer = self.producers[which]
        if producer.identity is not None:
            is_known = ID in self.driver.shard.transactions
            answer = self.driver.init(producer.identity.producer_id, producer.identity.producer_epoch)
            if answer.error is ErrorCode.NONE and is_known:
                assert producer is self.newest, "a fenced producer went on"
            self.initialized(producer, answer, lost)

    def initialized(self, producer: Producer, answer: Answer, lost: bool) -> None:
        if answer.error is not ErrorCode.NONE:
            assert answer.error in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.PRODUCER_FENCED)
            return
        assert answer.producer_epoch < 32767
        assert self.driver.transaction().state in AT_REST
        self.told(answer)
        self.newest = producer
        if not lost:
            producer.become(answer)

    def told(self, answer: Answer) -> None:
        identity = answer.producer_id, answer.producer_epoch
        assert identity >= self.highest, "an epoch went back"
        self.highest = identity

    @rule(which=producers, partitions=partition_sets)
    def add(self, which: int, partitions: set[TopicPartition]) -> None:
        """A producer writes to partitions."""
        producer = self.producers[which]
        if producer.identity is None or producer.unheard_end is not None:
            return
        error = self.driver.add(producer.identity, *partitions, client=producer.client_version)
        if error is ErrorCode.NONE:
            assert producer is self.newest, "a fenced producer added partitions"
            assert self.driver.transaction().state is ONGOING
            producer.added |= partitions
            assert self.driver.transaction().partitions == producer.added, "a part of the transaction is gone"
            assert set(self.driver.verify(producer.identity, partitions).values()) == {ErrorCode.NONE}
        elif producer is not self.newest:
            assert ErrorCode.NONE not in self.driver.verify(producer.identity, partitions).values()

    @rule(which=producers, committed=st.booleans(), lost=losses)
    def end(self, which: int, committed: bool, lost: bool) -> None:
        """A producer ends its transaction; if it has done so and heard nothing, it repeats that."""
        producer = self.producers[which]
        if producer.identity is None:
            return
        if producer.unheard_end is not None:
            committed = producer.unheard_end
        length = len(self.driver.log)
        answer = self.driver.end(producer.identity, committed=committed, client=producer.client_version)
        self.watcher.watch(self.driver.events)
        if answer.error is not ErrorCode.NONE:
            assert len(self.driver.log) == length, "a refused request changed something"
            return
        assert producer is self.newest, "a fenced producer ended a transaction"
        assert self.watcher.last_outcome is committed, "the producer was told something else"
        if len(self.driver.log) > length or producer.added:  # or else it repeats what it knows to be ended
            assert self.watcher.partitions == producer.added, "a part of the transaction is gone"
        if answer.producer_id >= 0:
            self.told(answer)
            transaction = self.driver.transaction()
            if transaction.state in AT_REST:
                assert answer[1:] == (transaction.producer_id, transaction.producer_epoch)
        if lost:
            producer.unheard_end = committed
        else:
            producer.become(answer if answer.producer_id >= 0 else producer.identity)

    # The world ---------------------------------------------------------------------------------------------

    @rule(what=st.sampled_from(["time", "failure", "restart", "version", "expiry", "epochs"]), data=st.data())
    def something_happens(self, what: str, data: st.DataObject) -> None:
        """One rule for all of these, so that most steps are requests."""
        if what == "time":  # some transactions time out
            self.driver.let_time_pass(data.draw(st.sampled_from([1, 30_000, 61_000])))
            assert self.driver.shard.timed_out(self.driver.now_ms) == []
        elif what == "failure":  # these partitions take no markers for a while, all others do again
            self.driver.unreachable = data.draw(st.sets(st.sampled_from([P0, P1, P2])))
            self.driver.finish()
        elif what == "restart":
            self.driver.restart()
        elif what == "version":  # an admin sets transaction.version
            self.driver.version = data.draw(st.integers(0, 2))
        elif what == "expiry":  # the id has not been used for long, if it is at rest
            self.driver.expire(0)
            if ID not in self.driver.shard.transactions:
                self.newest = None
        elif self.is_at_rest() and self.driver.transaction().producer_epoch < 32_000:
            self.wear_out_the_epochs()

    def wear_out_the_epochs(self) -> None:
        """As if tens of thousands of producers had come and gone."""
        value = decode_record(*self.driver.log[-1]).value
        assert value is not None
        value.producer_epoch = 32_765
        value.previous_producer_id = -1  # what a version 0 record cannot say
        value.client_transaction_version = 0
        self.driver.append(TransactionRecord(ID, value))
        self.highest = (value.producer_id, 32_765)
        self.newest = None

    def is_at_rest(self) -> bool:
        found = self.driver.shard.transactions.get(ID)
        return found is not None and found.state in AT_REST

    # What must hold ----------------------------------------------------------------------------------------

    @invariant()
    def the_log_gives_the_same_state(self) -> None:
        live, replayed = facts(self.driver.shard), facts(self.driver.replayed())
        for transactional_id, transaction in self.driver.shard.transactions.items():
            if transaction.state in ENDING:  # which markers are written is not in the log
                live[transactional_id]["partitions"] = replayed[transactional_id]["partitions"]
        assert replayed == live

    @invariant()
    def transactions_end_as_decided(self) -> None:
        self.watcher.watch(self.driver.events)

    def teardown(self) -> None:
        """When all partitions take markers again, nothing is left half done."""
        self.driver.unreachable = set()
        self.driver.finish()
        self.watcher.watch(self.driver.events)
        assert self.driver.shard.ending() == []


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
