"""Which batch holds the last record of each key: what decides whether a record is superseded.

Keys are kept whole, so that two keys are never taken for one, and lead to the base offset of their last batch; the
number is shared by all keys of a batch. Memory is bounded: every new key is charged with what it takes in the worst
case, and the map is full when the charges exceed its share of log.cleaner.dedupe.buffer.size. What comes
after that is left for another pass. A batch is taken as a whole, so each pass comes at least one batch further.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Final

from ottla.wire.records.key_scan import ScannedBatch

# A slot of a dict just after it has grown, the head of a bytes object, and rounding to its size class.
BYTES_PER_KEY: Final = 60 + 33 + 8
NOT_FOUND: Final = -1


class KeyMap:
    """The last batch of each key up to `latest_offset`."""

    __slots__ = ("charged_bytes", "entries", "latest_offset", "max_bytes")

    def __init__(self, max_bytes: float) -> None:
        self.max_bytes = max_bytes
        self.charged_bytes = 0
        self.entries: dict[bytes, int] = {}
        self.latest_offset = -1

    @property
    def is_full(self) -> bool:
        return self.charged_bytes >= self.max_bytes

    def add(self, scan: ScannedBatch, base_offset: int) -> None:
        """The keys of a batch that comes after all others so far."""
        keys: Sequence[bytes] = scan.keys
        if scan.keyless:
            without = set(scan.keyless)
            keys = [key for index, key in enumerate(keys) if index not in without]
        if not keys:
            return
        entries = self.entries
        known = len(entries)
        entries.update(zip(keys, repeat(base_offset)))
        if added := len(entries) - known:
            average_bytes = len(b"".join(keys)) // len(keys) + 1
            self.charged_bytes += added * (BYTES_PER_KEY + average_bytes)

    def survivors(self, scan: ScannedBatch, base_offset: int) -> Sequence[int]:
        """The indexes of the records of a batch that no later record supersedes; none without a key."""
        keys = scan.keys
        if not keys:
            return ()
        if scan.keyless:
            return self._survivors_among_keyless(scan, base_offset)
        last_batches = list(map(self.entries.get, keys, repeat(NOT_FOUND)))
        kept: Sequence[int] = range(len(keys))
        if max(last_batches) > base_offset:
            kept = [index for index, last_batch in enumerate(last_batches) if last_batch <= base_offset]
        if kept and len(set(keys)) != len(keys):
            last = dict(zip(keys, range(len(keys)), strict=True))
            kept = [index for index in kept if last[keys[index]] == index]
        return kept

    def _survivors_among_keyless(self, scan: ScannedBatch, base_offset: int) -> Sequence[int]:
        without = set(scan.keyless)
        last = {key: index for index, key in enumerate(scan.keys) if index not in without}
        return sorted(index for key, index in last.items() if self.entries.get(key, NOT_FOUND) <= base_offset)
