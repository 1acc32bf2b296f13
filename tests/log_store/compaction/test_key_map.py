"""The map of keys finds the last record of each key, whole or by digests, in the memory that it may take."""

import random
from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from ottla.log_store.compaction.digest_table import DigestTable
from ottla.log_store.compaction.key_map import KeyMap
from ottla.wire.records.key_scan import NO_KEY, KeyScan
from tests.wire.memory import allocates_little

ROOMY = 1 << 30
KAFKA_BYTES_PER_KEY = 24


def scan_of(keys: list[bytes]) -> KeyScan:
    return KeyScan(keys, [index for index, key in enumerate(keys) if key == NO_KEY], [])


def survivors(key_map: KeyMap, counts: list[int]) -> list[list[int]]:
    """For each batch, the indexes of the records that stay; batches are 1000 offsets apart."""
    flags = key_map.flags_of([number * 1000 for number in range(len(counts))])
    assert flags is not None
    parts = [flags.superseded[first:end] for first, end in pairwise(flags.bounds)]
    assert [len(part) for part in parts] == counts
    return [[index for index, goes in enumerate(part) if not goes] for part in parts]


@given(
    st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=30), min_size=1, max_size=30),
    st.sampled_from([4_000, 20_000, ROOMY]),
)
@settings(max_examples=80, deadline=None)
def test_last_record_of_each_key(batches: list[list[int]], max_bytes: int) -> None:
    """Whatever the memory, the records that stay are those a plain dict names; 0 stands for no key."""
    key_map = KeyMap(max_bytes)
    last: dict[bytes, tuple[int, int]] = {}
    for number, batch in enumerate(batches):
        keys = [b"key %d" % key if key else NO_KEY for key in batch]
        key_map.add(scan_of(keys), [number * 1000], [len(keys)])
        last |= {key: (number, index) for index, key in enumerate(keys) if key}
    key_map.seal()
    assert len(key_map) == len(last)
    found = survivors(key_map, [len(batch) for batch in batches])
    stay = {(number, index) for number, indexes in enumerate(found) for index in indexes}
    assert stay == set(last.values())
    asked = [b"key %d" % number for number in range(70)] + [NO_KEY]
    flags = key_map.flags_of_clean(scan_of(asked))
    assert [bool(flag) for flag in flags] == [key in last or key == NO_KEY for key in asked]
    assert key_map.flags_of([len(batches) * 1000]) is None


def fill(key_map: KeyMap) -> int:
    """Keys of 20 bytes in batches of 500 until it is full; returns how many."""
    number = 0
    while not key_map.is_full:
        keys = [b"\x28%020d" % each for each in range(number, number + 500)]
        key_map.add(scan_of(keys), [number * 2], [len(keys)])
        assert key_map.charged_bytes < key_map.max_bytes * 1.1  # a batch more than fits
        number += len(keys)
    return number


def test_about_as_many_keys_as_in_kafka() -> None:
    """Where all keys are new, nine tenths as many fit as into a map of Kafka's of that size, flags included."""
    key_map = KeyMap(4_000_000)
    count = fill(key_map)
    assert count * KAFKA_BYTES_PER_KEY > 0.85 * key_map.max_bytes
    key_map.seal()
    assert len(key_map) == count
    assert not any(key_map.flags_of_clean(scan_of([b"\x28%020d" % count])))
    assert all(key_map.flags_of_clean(scan_of([b"\x28%020d" % number for number in range(0, count, 99)])))


@pytest.mark.parametrize("max_bytes", [1_500_000, 2_200_000])
def test_memory_in_use_is_bounded(max_bytes: int) -> None:
    """Not only what is charged, but what is allocated at any time stays below the limit, however full a dict is when
    its keys go to a table."""
    with allocates_little(max_bytes):
        key_map = KeyMap(max_bytes)
        assert fill(key_map) > max_bytes // 30
        key_map.seal()


def test_many_records_of_few_keys_fill_it() -> None:
    """Records take memory too, and a map is full of them alone."""
    key_map = KeyMap(100_000)
    rounds = 0
    while not key_map.is_full:
        key_map.add(scan_of([b"\x02a", b"\x02b"] * 500), [rounds * 1000], [1000])
        rounds += 1
    assert 90 < rounds <= 100


def test_digests_across_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that look like a digest but lie across two entries are not taken for one."""
    digests = {
        b"a": bytes(4) + b"AAAAAAAABBBB",
        b"b": bytes(4) + b"CCCCDDDDEEEE",
        b"across": bytes(4) + b"BBBB\7\0\0\0CCCC",
    }
    monkeypatch.setattr("xxhash.xxh3_128_digest", lambda key, seed: digests[key])
    table = DigestTable(2000)
    table.update({b"a": 7, b"b": 8})
    assert table.flags_of([b"a", b"b", b"across"]) == bytes([1, 1, 0])
    table.update({b"across": 9, b"a": 10})
    assert table.keys == 3
    assert sorted(number for numbers in table.numbers() for number in numbers) == [8, 9, 10]
    assert table.replace({b"b": 11, b"a": 12}) == {}
    assert sorted(number for numbers in table.numbers() for number in numbers) == [9, 11, 12]


def test_buckets_that_overflow() -> None:
    """A table that is full to the last entry still finds everything, and refuses one more."""
    table = DigestTable(8 * 1025)
    keys = [b"%d" % number for number in range(8 * 64)]
    random.Random(1).shuffle(keys)
    table.update({key: number for number, key in enumerate(keys[:300])})
    table.update({key: number for number, key in enumerate(keys)})
    assert table.keys == len(keys)
    assert all(table.flags_of(keys))
    assert sorted(number for numbers in table.numbers() for number in numbers) == list(range(len(keys)))
    with pytest.raises(ValueError, match="full"):
        table.update({b"one more": 1})
