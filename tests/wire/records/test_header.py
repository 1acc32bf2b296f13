"""Batch headers: reading, splitting, patching."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records import (
    BatchView,
    Codec,
    CorruptBatch,
    Record,
    build_batch,
    iter_batches,
    patch,
    patch_append_time,
    patch_timestamp,
    split_batches,
)

# The record k=vv at timestamp 1000, of producer 5, epoch 1, sequence 9, as kafka-clients 4.3.0 wrote it.
GOLDEN = bytes.fromhex(
    "0000000000000000" "0000003b" "ffffffff" "02" "52a4e0dd" "0000" "00000000"
    "00000000000003e8" "00000000000003e8" "0000000000000005" "0001" "00000009" "00000001"
    "12000000026b04767600"
)  # fmt: skip


def batch(count: int = 1, **options: int) -> bytes:
    return build_batch([Record(offset, 1000 + offset, b"k", b"v") for offset in range(count)], **options)


def test_fields_of_a_known_batch() -> None:
    """Each field is read from its own place."""
    view = BatchView(memoryview(b"junk" + GOLDEN), 4)
    assert (view.base_offset, view.batch_length, view.partition_leader_epoch, view.magic) == (0, 59, -1, 2)
    assert (view.attributes, view.last_offset_delta, view.records_count) == (0, 0, 1)
    assert (view.base_timestamp, view.max_timestamp) == (1000, 1000)
    assert (view.producer_id, view.producer_epoch, view.base_sequence) == (5, 1, 9)
    assert view.size_in_bytes == len(GOLDEN)
    assert view.crc == view.compute_crc()
    assert (
        build_batch([Record(0, 1000, b"k", b"vv")], producer_id=5, producer_epoch=1, base_sequence=9)
        == GOLDEN
    )


@pytest.mark.parametrize(
    ("bit", "name"),
    [
        (0x08, "timestamp_type"),
        (0x10, "is_transactional"),
        (0x20, "is_control"),
        (0x40, "has_delete_horizon"),
    ],
)
def test_attribute_bits(bit: int, name: str) -> None:
    """Each attribute has a bit of its own."""
    data = bytearray(batch())
    assert not getattr(BatchView(memoryview(data)), name)
    data[22] |= bit
    assert getattr(BatchView(memoryview(data)), name)
    data[22] = 0xFF & ~bit
    assert not getattr(BatchView(memoryview(data)), name)


@pytest.mark.parametrize("codec", range(8))
def test_codec_bits(codec: int) -> None:
    """The codec is the number in three bits, also where it names no codec."""
    data = bytearray(batch())
    data[22] = codec | 0xF8
    assert BatchView(memoryview(data)).codec == codec


def test_data_and_payload_are_views() -> None:
    """Neither the batch nor its payload is copied."""
    data = bytearray(batch() + batch())
    second = split_batches(memoryview(data))[1]
    assert second.data.obj is data
    assert bytes(second.data) == batch()
    assert bytes(second.payload) == batch()[61:]
    assert second.end == len(data)


def test_last_sequence() -> None:
    """A batch without a sequence has no last one; others wrap at 2^31."""
    assert BatchView(memoryview(batch(3))).last_sequence == -1
    assert BatchView(memoryview(batch(3, producer_id=1, base_sequence=4))).last_sequence == 6
    assert BatchView(memoryview(batch(3, producer_id=1, base_sequence=2**31 - 2))).last_sequence == 0


def test_every_bit_after_the_crc_counts() -> None:
    """Any change of attributes or records is found by the checksum; offset and epoch lie outside it."""
    good = batch()
    for position in range(len(good)):
        data = bytearray(good)
        data[position] ^= 0x10
        changed = BatchView(memoryview(data))
        if position < 8 or 12 <= position < 17:
            assert changed.crc_matches()
        elif position >= 17:
            assert not changed.crc_matches()


@given(base_offset=st.integers(0, 2**63 - 100), leader_epoch=st.integers(0, 2**31 - 1))
def test_patch_keeps_the_checksum(base_offset: int, leader_epoch: int) -> None:
    """Offsets are assigned in place and nothing else changes."""
    data = bytearray(b"before" + batch(3) + b"after")
    patch(memoryview(data), 6, base_offset, leader_epoch)
    view = BatchView(memoryview(data), 6)
    assert (view.base_offset, view.last_offset, view.next_offset) == (
        base_offset,
        base_offset + 2,
        base_offset + 3,
    )
    assert view.partition_leader_epoch == leader_epoch
    assert view.crc_matches()
    assert data[:6] == b"before"
    assert data[-5:] == b"after"
    assert bytes(view.data)[16:] == batch(3)[16:]


def test_patch_append_time_and_back() -> None:
    """The append time is set with a fresh checksum, and can be taken back."""
    data = bytearray(batch() + batch(codec=Codec.ZSTD))
    pos = len(batch())
    patch_append_time(data, pos, 123456)
    view = BatchView(memoryview(data), pos)
    assert (view.timestamp_type, view.max_timestamp, view.codec) == (1, 123456, Codec.ZSTD)
    assert view.crc_matches()
    patch_timestamp(data, pos, 0, 1000)
    assert bytes(data) == batch() + batch(codec=Codec.ZSTD)


def test_split_takes_whole_batches_only() -> None:
    """Any cut is refused; a lazy reader stops before the batch that is cut."""
    whole = batch(2) + batch(3)
    first = len(batch(2))
    assert [view.records_count for view in split_batches(memoryview(whole))] == [2, 3]
    assert split_batches(memoryview(b"")) == []
    for end in range(1, len(whole)):
        cut = memoryview(whole)[:end]
        assert [view.pos for view in iter_batches(cut)] == ([0] if end >= first else [])
        if end != first:
            with pytest.raises(CorruptBatch):
                split_batches(cut)
    assert [view.pos for view in iter_batches(memoryview(whole), first)] == [first]
    assert [view.pos for view in iter_batches(memoryview(whole), 0, first + 5)] == [0]


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 14, 48, 2**31 - 1])
def test_impossible_lengths(length: int) -> None:
    """A batch length that no batch has is corrupt, whatever follows."""
    data = bytearray(batch())
    data[8:12] = struct.pack(">i", length)
    with pytest.raises(CorruptBatch):
        split_batches(memoryview(data))


@pytest.mark.parametrize(
    ("magic", "code"),
    [(0, ErrorCode.INVALID_RECORD), (1, ErrorCode.INVALID_RECORD), (3, ErrorCode.CORRUPT_MESSAGE),
     (0x80, ErrorCode.CORRUPT_MESSAGE), (0xFF, ErrorCode.CORRUPT_MESSAGE)],
)  # fmt: skip
def test_other_magic(magic: int, code: ErrorCode) -> None:
    """Old message formats and unknown ones are told apart, as Kafka does."""
    data = bytearray(batch())
    data[16] = magic
    with pytest.raises(KafkaError) as caught:
        split_batches(memoryview(data))
    assert caught.value.code == code


@given(st.binary(max_size=200))
def test_random_bytes_raise_only_kafka_errors(data: bytes) -> None:
    """No bytes make the header readers fail in a way of their own."""
    for read in (split_batches, lambda buf: list(iter_batches(buf))):
        batches: list[BatchView] = []
        code = ErrorCode.CORRUPT_MESSAGE
        try:
            batches = read(memoryview(data))
        except KafkaError as error:
            code = error.code
        assert code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)
        assert sum(view.size_in_bytes for view in batches) <= len(data)
