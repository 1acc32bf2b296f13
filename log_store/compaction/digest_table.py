"""Keys by their digests, in 16 bytes each: what the map of keys becomes when there are too many to keep whole.

    entry, 16 bytes:  12 bytes of a digest,  uint32 number of the key's last record

The table is one stretch of memory in buckets of 64 entries; other bits of the digest choose the bucket, and what does
not fit into it goes to the next one. Looking for an entry is a search for 12 bytes in about 800, which takes C no
longer than Python takes for a call. Two keys are taken for one if some 110 bits of a hash with a random seed agree
(Kafka: the 128 of an MD5).
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

import xxhash

ENTRY_BYTES: Final = 16
_DIGEST_BYTES: Final = 12
_BUCKET_ENTRIES: Final = 64
_BUCKET_BYTES: Final = ENTRY_BYTES * _BUCKET_ENTRIES
_LARGEST_SHARE: Final = 0.85  # of the entries in use; with more, too many do not lie in their own bucket
_PIECE: Final = 1024  # keys

_iter_digests = struct.Struct("=I12s").iter_unpack
_pack_number = struct.Struct("=I").pack_into
_iter_numbers = struct.Struct("4s").iter_unpack


class DigestTable:
    """Digest of a key -> number, in `max_bytes` of memory."""

    __slots__ = ("_buckets", "_counts", "_seed", "_table", "keys", "max_bytes", "max_keys")

    def __init__(self, max_bytes: float) -> None:
        self._buckets = max(int(max_bytes) // (_BUCKET_BYTES + 1), 1)
        self.max_bytes = self._buckets * (_BUCKET_BYTES + 1)
        self._table = bytearray(self._buckets * _BUCKET_BYTES)
        self._counts = bytearray(self._buckets)  # how many entries of each bucket are in use
        self._seed = int.from_bytes(os.urandom(8), "big")  # so that nobody can make up keys that agree
        self.keys = 0
        self.max_keys = int(self._buckets * _BUCKET_ENTRIES * _LARGEST_SHARE)

    @classmethod
    def for_keys(cls, count: int) -> DigestTable:
        """One with room for so many."""
        return cls((count / _LARGEST_SHARE / _BUCKET_ENTRIES + 1) * (_BUCKET_BYTES + 1))

    def has_room(self, count: int) -> bool:
        """Whether so many keys more may come."""
        return self.keys + count <= self.max_keys

    def replace(self, entries: dict[bytes, int]) -> dict[bytes, int]:
        """Give those of the keys that are here their new numbers; returns the others."""
        table, buckets, find = self._table, self._buckets, self._find
        others = {}
        for (bits, digest), (key, number) in zip(self._digests(entries), entries.items(), strict=True):
            at, _ = find(bits % buckets, digest)
            if at < 0:
                others[key] = number
            else:
                _pack_number(table, at + _DIGEST_BYTES, number)
        return others

    def update(self, entries: dict[bytes, int]) -> None:
        """Put keys in, or new numbers in the place of old ones. ValueError if there is no room for them."""
        table, counts, buckets = self._table, self._counts, self._buckets
        find = table.find
        added = 0
        numbers = _iter_numbers(array("I", entries.values()))
        for (bits, digest), (number,) in zip(self._digests(entries), numbers, strict=True):
            bucket = bits % buckets
            start = bucket * _BUCKET_BYTES
            count = counts[bucket]
            at = find(digest, start, start + count * ENTRY_BYTES)
            if (at < 0 and count == _BUCKET_ENTRIES) or (at >= 0 and at % ENTRY_BYTES):
                at, bucket = self._find(bucket, digest)
            if at < 0:
                at = bucket * _BUCKET_BYTES + counts[bucket] * ENTRY_BYTES
                counts[bucket] += 1
                added += 1
            table[at : at + ENTRY_BYTES] = digest + number
        self.keys += added

    def flags_of(self, keys: Iterable[bytes]) -> bytes:
        """A byte for each key: 1 if it is in the table."""
        buckets, find = self._buckets, self._find
        return bytes([find(bits % buckets, digest)[0] >= 0 for bits, digest in self._digests(keys)])

    def numbers(self) -> Iterator[array[int]]:
        """All numbers, some at a time."""
        table = memoryview(self._table)
        for bucket, count in enumerate(self._counts):
            start = bucket * _BUCKET_BYTES
            yield array("I", table[start : start + count * ENTRY_BYTES].tobytes())[3::4]

    def _digests(self, keys: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        """Bits that choose a bucket, and the digest, of each key. They are made for some at a time: those of all keys
        of a map would take half as much memory again."""
        seed, digest_of = self._seed, xxhash.xxh3_128_digest
        remaining = iter(keys)
        pieces = iter(lambda: b"".join([digest_of(key, seed) for key in islice(remaining, _PIECE)]), b"")
        return chain.from_iterable(map(_iter_digests, pieces))

    def _find(self, bucket: int, digest: bytes) -> tuple[int, int]:
        """Where the entry of a digest is, or else -1 and the bucket that it would go to."""
        table, counts = self._table, self._counts
        for _ in range(self._buckets):
            start = bucket * _BUCKET_BYTES
            end = start + counts[bucket] * ENTRY_BYTES
            at = table.find(digest, start, end)
            while at >= 0 and at % ENTRY_BYTES:  # across two others
                at = table.find(digest, at + 1, end)
            if at >= 0:
                return at, bucket
            if counts[bucket] < _BUCKET_ENTRIES:
                return -1, bucket
            bucket = (bucket + 1) % self._buckets
        raise ValueError("the table is full")
