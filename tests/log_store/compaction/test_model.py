"""Random histories, compacted at random moments: what consumers end up with never changes."""

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.log_store.compaction.log_cleaning import CleaningResources, look_at
from ottla.wire.records.builder import build_batch
from ottla.wire.records.control import ControlType
from ottla.wire.records.records import Record
from tests.log_store.batches import NOW_MS, append, new_log, reopen
from tests.log_store.compaction.rounds import batches_of, clean_once, end_txn, seen, state_of

KEYS = [b"k%d" % number for number in range(6)]
RETENTION_MS = 1000
RECORDS = st.lists(
    st.tuples(st.sampled_from(KEYS), st.none() | st.binary(max_size=60)), min_size=1, max_size=8
)


class Compaction(RuleBasedStateMachine):
    """A log with plain, idempotent and transactional producers, beside everything it was ever given."""

    @initialize(codec=st.integers(0, 4), segment_bytes=st.integers(300, 1500))
    def create(self, codec: int, segment_bytes: int) -> None:
        self.path = Path(tempfile.mkdtemp())
        self.codec = codec
        self.now_ms = NOW_MS
        self.log = new_log(
            self.path,
            internal_segment_bytes=segment_bytes,
            index_interval_bytes=100,
            cleanup_policy=frozenset({"compact"}),
            delete_retention_ms=RETENTION_MS,
        )
        self.written: dict[int, tuple[int, bytes | None, bytes | None]] = {}
        self.committed: dict[bytes, bytes] = {}
        self.sequences: Counter[int] = Counter()
        self.open: dict[int, list[tuple[int, bytes, bytes | None]]] = {}
        self.decided: list[tuple[int, bytes, bytes | None]] = []

    def append(self, pairs: list[tuple[bytes, bytes | None]], producer_id: int, *, in_txn: bool) -> None:
        records = [
            Record(index, self.now_ms + index % 3, key, value) for index, (key, value) in enumerate(pairs)
        ]
        header = {}
        if producer_id >= 0:
            header = {"producer_id": producer_id, "producer_epoch": 0}
            header["base_sequence"] = self.sequences[producer_id]
            self.sequences[producer_id] += len(pairs)
        data = build_batch(records, codec=self.codec, is_transactional=in_txn, **header)
        base = append(self.log, memoryview(bytearray(data)), now_ms=self.now_ms)
        entries = [(base + index, key, value) for index, (key, value) in enumerate(pairs)]
        for record, (offset, key, value) in zip(records, entries, strict=True):
            self.written[offset] = (record.timestamp, key, value)
        if in_txn:
            self.open.setdefault(producer_id, []).extend(entries)
        else:
            self.decided += entries

    @rule(pairs=RECORDS)
    def plain(self, pairs: list[tuple[bytes, bytes | None]]) -> None:
        self.append(pairs, -1, in_txn=False)

    @rule(pairs=RECORDS, producer_id=st.integers(0, 1))
    def idempotent(self, pairs: list[tuple[bytes, bytes | None]], producer_id: int) -> None:
        self.append(pairs, producer_id, in_txn=False)

    @rule(pairs=RECORDS, producer_id=st.integers(10, 12))
    def transactional(self, pairs: list[tuple[bytes, bytes | None]], producer_id: int) -> None:
        self.append(pairs, producer_id, in_txn=True)

    @rule(producer_id=st.integers(10, 12), commits=st.booleans())
    def end(self, producer_id: int, commits: bool) -> None:
        entries = self.open.pop(producer_id, [])
        if entries:
            end_txn(self.log, ControlType.COMMIT if commits else ControlType.ABORT, producer_id)
            if commits:
                self.decided += entries

    @rule(ms=st.integers(1, 2 * RETENTION_MS))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(key_map_bytes=st.sampled_from([1, 400, 1 << 20]))
    def compact(self, key_map_bytes: int) -> None:
        log = self.log
        log.flush()
        dirty = look_at(log, self.now_ms)
        before = {view.base_offset: bytes(view.data) for view, _ in batches_of(log)}
        facts = (log.log_start_offset, log.log_end_offset, log.high_watermark, log.last_stable_offset)
        result = clean_once(log, self.now_ms, CleaningResources(key_map_bytes))
        assert facts == (
            log.log_start_offset,
            log.log_end_offset,
            log.high_watermark,
            log.last_stable_offset,
        )
        if dirty is None or result is None:
            assert dirty is result is None
            return
        assert dirty.offsets.first_dirty_offset < result.end_offset <= dirty.offsets.first_uncleanable_offset
        after = {view.base_offset: bytes(view.data) for view, _ in batches_of(log)}
        assert after.keys() <= before.keys()
        for offset, data in before.items():
            if offset >= dirty.offsets.first_uncleanable_offset:
                assert after[offset] == data
        counts = Counter(
            record.key for record in seen(log, committed=False) if record.offset < result.end_offset
        )
        assert all(count == 1 for count in counts.values()), counts

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        log = self.log
        sequences = {entry.producer_id: entry.last_sequence for entry in log.producers.producers.values()}
        checkpoint = log.cleaner_checkpoint
        if clean:
            log.flush()
            log.close()
        else:
            log.release()
        log = self.log = reopen(log, clean=clean, **({} if clean else {"recovery_point": 0}))
        log.cleaner_checkpoint = checkpoint
        log.advance_high_watermark(log.log_end_offset)
        found = {entry.producer_id: entry.last_sequence for entry in log.producers.producers.values()}
        assert found == sequences

    @invariant()
    def consumers_agree(self) -> None:
        if not hasattr(self, "log"):
            return
        everything = seen(self.log, committed=False)
        offsets = [record.offset for record in everything]
        assert offsets == sorted(set(offsets))
        for offset, *rest in everything:
            assert self.written[offset] == tuple(rest)
        # A transaction becomes visible with its records where they lie, among those of others.
        stable = self.log.last_stable_offset
        expected: dict[bytes | None, bytes] = {}
        for offset, key, value in sorted(self.decided):
            if offset < stable:
                if value is None:
                    expected.pop(key, None)
                else:
                    expected[key] = value
        assert state_of(seen(self.log)) == expected

    def teardown(self) -> None:
        if hasattr(self, "path"):
            self.log.release()
            shutil.rmtree(self.path)


Compaction.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
test_compaction = Compaction.TestCase
