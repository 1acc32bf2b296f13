"""Transactions in a log against a plain list: who reads committed records sees these and no others, whatever happens.

The reader does what clients do: it takes the aborted transactions that came with the data, and leaves out what their
producers wrote until their markers. The first unstable offset, the last stable offset and the aborted transactions are
worked out anew from the whole list after each step.
"""

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.log_store.txn_index import AbortedTxn
from ottla.log_store.validation import AppendOrigin
from ottla.wire.records.control import ControlType, build_end_txn_marker, control_type_of
from ottla.wire.records.header import BatchView
from ottla.wire.records.records import iter_records
from tests.log_store.batches import NOW_MS, batch, new_log, producer_batch, reopen, views

PRODUCERS = st.sampled_from([11, 12, 13])


class Written(NamedTuple):
    """A batch of the log: one without a producer, data of a transaction, or a marker."""

    base_offset: int
    end_offset: int
    producer_id: int = -1
    marker: ControlType | None = None


class Ended(NamedTuple):
    producer_id: int
    first_offset: int
    marker_offset: int
    is_aborted: bool


class TransactionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-txn-model-"))
        self.log = new_log(
            self.directory, internal_segment_bytes=700, index_interval_bytes=150, segment_index_bytes=96
        )
        self.written: list[Written] = []
        self.high_watermark = 0
        self.last_stable_offset = 0
        self.producers: dict[int, tuple[int, int]] = {}  # epoch and next sequence

    def teardown(self) -> None:
        self.log.release()
        shutil.rmtree(self.directory)

    @property
    def end(self) -> int:
        return self.written[-1].end_offset if self.written else 0

    def transactions(self) -> tuple[dict[int, int], list[Ended]]:
        """The first offsets of open transactions by producer, and those that have ended, by their markers."""
        opened: dict[int, int] = {}
        ended = []
        for each in self.written:
            if each.marker is not None and each.producer_id in opened:
                first = opened.pop(each.producer_id)
                is_aborted = each.marker is ControlType.ABORT
                ended.append(Ended(each.producer_id, first, each.base_offset, is_aborted))
            elif each.marker is None and each.producer_id >= 0:
                opened.setdefault(each.producer_id, each.base_offset)
        return opened, ended

    def first_unstable(self) -> int | None:
        opened, ended = self.transactions()
        unsettled = [each.first_offset for each in ended if each.marker_offset >= self.high_watermark]
        return min((*opened.values(), *unsettled), default=None)

    # Writing -----------------------------------------------------------------------------------------------

    def _write(self, records: memoryview, producer_id: int = -1) -> None:
        result = self.log.append(records, leader_epoch=0, now_ms=NOW_MS)
        assert result.base_offset == self.end
        self.written.append(Written(result.base_offset, result.last_offset + 1, producer_id))

    @rule(count=st.integers(1, 3))
    def write_plain(self, count: int) -> None:
        self._write(batch(*[b"plain"] * count))

    @rule(producer_id=PRODUCERS, count=st.integers(1, 3))
    def write_in_transaction(self, producer_id: int, count: int) -> None:
        epoch, sequence = self.producers.get(producer_id, (0, 0))
        data = producer_batch(
            count, sequence=sequence, producer_id=producer_id, epoch=epoch, is_transactional=True
        )
        self._write(data, producer_id)
        self.producers[producer_id] = (epoch, sequence + count)

    @rule(
        producer_id=PRODUCERS,
        marker=st.sampled_from([ControlType.COMMIT, ControlType.ABORT]),
        bump=st.booleans(),
    )
    def end_transaction(self, producer_id: int, marker: ControlType, bump: bool) -> None:
        """With transactions V2 the marker carries the next epoch; a marker without a transaction is an empty one."""
        epoch, sequence = self.producers.get(producer_id, (0, 0))
        if bump:
            epoch, sequence = epoch + 1, 0
        elif producer_id not in self.log.producers.producers:
            # All that it wrote was deleted before a crash. A marker makes it known again, but not where it was, so that
            # it begins anew, as in Kafka.
            sequence = 0
        data = build_end_txn_marker(
            marker,
            timestamp=NOW_MS,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=0,
        )
        result = self.log.append(
            memoryview(bytearray(data)),
            leader_epoch=0,
            now_ms=NOW_MS,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=2 if bump else 0,
        )
        self.written.append(Written(result.base_offset, result.last_offset + 1, producer_id, marker))
        self.producers[producer_id] = (epoch, sequence)

    @rule(lag=st.integers(0, 3))
    def replicate(self, lag: int) -> None:
        """Followers have caught up, but for the last batches."""
        behind = self.written[: len(self.written) - lag]
        self.high_watermark = max(self.high_watermark, behind[-1].end_offset if behind else 0)
        self.log.advance_high_watermark(self.high_watermark)

    # What happens to logs ----------------------------------------------------------------------------------

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule(flushed=st.booleans(), clean=st.booleans())
    def restart(self, flushed: bool, clean: bool) -> None:
        self.replicate(0)  # a snapshot does not say which markers were replicated
        if flushed or clean:
            self.log.flush()
        if clean:
            self.log.close()
        else:
            self.log.release()
        self.log = reopen(self.log, clean=clean)

    @precondition(lambda self: not self.log.log_start_offset)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        kept = data.draw(st.integers(max(0, len(self.written) - 3), len(self.written)))
        self.replicate(0)
        self.written = self.written[:kept]
        self.log.truncate_to(self.end, NOW_MS)
        self.high_watermark = min(self.high_watermark, self.end)
        self.last_stable_offset = 0
        self.producers = {
            producer_id: (entry.producer_epoch, entry.last_sequence + 1)
            for producer_id, entry in self.log.producers.producers.items()
        }

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log.log_start_offset, self.log.last_stable_offset))
        self.log.delete_records_before(offset)
        self.log.purge_deleted_files()

    # Reading -----------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def read_committed(self, data: st.DataObject) -> None:
        log = self.log
        offset = data.draw(st.integers(log.log_start_offset, log.last_stable_offset))
        max_bytes = data.draw(st.integers(0, 500))
        result = log.read(offset, max_bytes, upto=log.last_stable_offset, at_least_one=True)
        found = views(result)
        seen = offsets_for_reader(found, log.aborted_transactions(offset, result))
        upto = found[-1].next_offset if found else offset
        assert upto <= log.last_stable_offset
        assert bool(found) == (offset < log.last_stable_offset)
        assert [each for each in seen if each >= offset] == self.committed_offsets(offset, upto)

    def committed_offsets(self, offset: int, upto: int) -> list[int]:
        _, ended = self.transactions()
        aborted = [each for each in ended if each.is_aborted]
        return [
            each
            for written in self.written
            if written.marker is None
            and not any(
                txn.producer_id == written.producer_id
                and txn.first_offset <= written.base_offset < txn.marker_offset
                for txn in aborted
            )
            for each in range(written.base_offset, written.end_offset)
            if offset <= each < upto
        ]

    @invariant()
    def stable_offsets(self) -> None:
        unstable = self.first_unstable()
        assert self.log.producers.first_unstable_offset == unstable
        expected = self.high_watermark
        if unstable is not None:
            expected = min(expected, max(unstable, self.log.log_start_offset))
        assert self.log.last_stable_offset == expected
        assert self.last_stable_offset <= expected, "the last stable offset went back"
        self.last_stable_offset = expected

    @invariant()
    def index_of_aborted_transactions(self) -> None:
        """Every aborted transaction with records in the log has its entry, which begins no later than these."""
        entries = {
            (each.producer_id, each.last_offset): each.first_offset
            for segment in self.log.segments
            for each in segment.txn_index.entries
        }
        _, ended = self.transactions()
        aborted = [each for each in ended if each.is_aborted]
        assert entries.keys() <= {(each.producer_id, each.marker_offset) for each in aborted}
        for txn in aborted:
            left = [
                each.base_offset
                for each in self.written
                if each.producer_id == txn.producer_id
                and txn.first_offset <= each.base_offset < txn.marker_offset
                and each.end_offset > self.log.log_start_offset
            ]
            if left:
                assert txn.first_offset <= entries[txn.producer_id, txn.marker_offset] <= left[0]


def offsets_for_reader(batches: list[BatchView], aborted: list[AbortedTxn]) -> list[int]:
    """The offsets that a client which reads committed records hands on."""
    to_come = sorted(aborted, key=lambda each: each.first_offset)
    left_out: set[int] = set()
    seen = []
    for each in batches:
        while to_come and to_come[0].first_offset <= each.last_offset:
            left_out.add(to_come.pop(0).producer_id)
        if each.is_control:
            if control_type_of(next(iter_records(each))) == ControlType.ABORT:
                left_out.discard(each.producer_id)
        elif not (each.is_transactional and each.producer_id in left_out):
            seen += [record.offset for record in iter_records(each)]
    return seen


TransactionMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestTransactionsModel = TransactionMachine.TestCase
