"""The log against a plain list: any sequence of appends, rolls, deletions, truncations and restarts."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.log_store.timestamps import TimestampOffset
from ottla.wire.errors import ErrorCode, KafkaError
from tests.log_store.batches import NOW_MS, append, batch, new_log, producer_batch, reopen, values_from, views


class LogMachine(RuleBasedStateMachine):
    """`records` is what a consumer must see: (offset, value, timestamp), in order."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-log-model-"))
        self.log = new_log(
            self.directory, internal_segment_bytes=900, index_interval_bytes=120, segment_index_bytes=96
        )
        self.records: list[tuple[int, bytes, int]] = []
        self.end = 0
        self.start = 0
        self.producer_id = 7
        self.sequence = 0
        self.epoch = 0
        self.ends_of_batches = [0]
        self.sent: list[tuple[int, int, int]] = []  # (sequence, count, base offset) of the producer

    def teardown(self) -> None:
        self.log.release()
        shutil.rmtree(self.directory)

    def _added(self, base: int, values: list[bytes], timestamps: list[int]) -> None:
        assert base == self.end
        for index, (value, timestamp) in enumerate(zip(values, timestamps, strict=True)):
            self.records.append((base + index, value, timestamp))
        self.end += len(values)
        self.ends_of_batches.append(self.end)

    @rule(
        values=st.lists(st.binary(max_size=40), min_size=1, max_size=4),
        later_ms=st.integers(-50, 50),
        codec=st.sampled_from([0, 0, 4]),
    )
    def append(self, values: list[bytes], later_ms: int, codec: int) -> None:
        timestamps = [NOW_MS + self.end + later_ms + index for index in range(len(values))]
        base = append(self.log, batch(*values, timestamps=timestamps, codec=codec), epoch=self.epoch)
        self._added(base, values, timestamps)

    @rule(count=st.integers(1, 3))
    def append_idempotent(self, count: int) -> None:
        base = append(
            self.log,
            producer_batch(count, sequence=self.sequence, producer_id=self.producer_id),
            epoch=self.epoch,
        )
        self._added(base, [b"%d" % (self.sequence + n) for n in range(count)], [NOW_MS] * count)
        self.sent.append((self.sequence, count, base))
        self.sequence += count

    @precondition(lambda self: self.sent)
    @rule()
    def retry_last(self) -> None:
        sequence, count, base = self.sent[-1]
        result = self.log.append(
            producer_batch(count, sequence=sequence, producer_id=self.producer_id),
            leader_epoch=self.epoch,
            now_ms=NOW_MS,
        )
        assert (result.duplicate, result.base_offset) == (True, base)

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end

    @rule()
    def new_leader_epoch(self) -> None:
        self.epoch += 1

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        assert self.log.delete_records_before(offset) == offset
        self.start = offset
        self.records = [record for record in self.records if record[0] >= offset]
        self.log.purge_deleted_files()

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        ends = [end for end in self.ends_of_batches if end >= self.start]
        offset = data.draw(st.sampled_from(ends or [self.end]))
        assert self.log.truncate_to(offset, NOW_MS) == (offset < self.end)
        self.end = min(self.end, offset)
        self.records = [record for record in self.records if record[0] < offset]
        self.ends_of_batches = [end for end in self.ends_of_batches if end <= offset]
        self.sent = [each for each in self.sent if each[2] < offset]
        if not self.sent or self.sent[-1][2] < self.start:
            # what is left of the producer may be gone with the log's beginning
            self._new_producer()
        else:
            self.sequence = self.sent[-1][0] + self.sent[-1][1]

    def _new_producer(self) -> None:
        self.sent = []
        self.producer_id += 1
        self.sequence = 0

    @rule()
    def restart(self) -> None:
        self.log.flush()
        self.log.close()
        self.log = reopen(self.log, clean=True)

    @rule(flushed=st.booleans())
    def crash(self, flushed: bool) -> None:
        if flushed:
            self.log.flush()
        self.log.release()
        self.log = reopen(self.log, clean=False)
        self.log.advance_high_watermark(self.end)
        if self.sent and self.sent[-1][2] < self.start:
            self._new_producer()

    @rule(data=st.data())
    def find_by_time(self, data: st.DataObject) -> None:
        asked = data.draw(st.integers(NOW_MS - 60, NOW_MS + self.end + 60))
        expected = next(((time, offset) for offset, _, time in self.records if time >= asked), None)
        found = self.log.offset_for_timestamp(asked)
        assert (found and found[:2]) == expected
        newest = self.log.max_timestamp_offset()
        if self.records and newest is not None and newest.offset >= self.start:
            assert isinstance(newest, TimestampOffset)
            assert newest.timestamp == max(time for _, _, time in self.records)

    @rule(data=st.data())
    def read_anywhere(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        max_bytes = data.draw(st.integers(0, 400))
        upto = data.draw(
            st.sampled_from([end for end in self.ends_of_batches if end >= self.start] or [self.end])
        )
        read = self.log.read(offset, max_bytes, upto=upto, at_least_one=True)
        batches = views(read)
        assert bool(batches) == (offset < upto)
        if batches:
            assert batches[0].base_offset <= offset <= batches[0].last_offset
            assert batches[-1].last_offset < upto
        if self.start:
            with pytest.raises(KafkaError) as refused:
                self.log.read(self.start - 1, 10, upto=self.end, at_least_one=True)
            assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE

    @invariant()
    def same_records(self) -> None:
        log = self.log
        assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (
            self.start,
            self.end,
            self.end,
        )
        assert values_from(log, self.start) == [(offset, value) for offset, value, _ in self.records]


LogMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestLogModel = LogMachine.TestCase
