"""Unpacking into memory that is used again gives what decompressing gives, whatever the payload is."""

from __future__ import annotations

import os
import sys

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records import Codec, CorruptBatch, compress, compression, decompress
from ottla.wire.records.unpacking import SCRATCH_BYTES, Scratch, put_back, take_scratch

COMPRESSED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
ROOMY_BYTES = 16 * 1024 * 1024


def outcome(codec: Codec, packed: bytes, max_bytes: int, scratch: Scratch | None = None) -> bytes | ErrorCode:
    """The records, or how they were refused."""
    try:
        if scratch is None:
            return decompress(codec, packed, max_bytes)
        buffer, end = scratch.unpack(codec, memoryview(packed), max_bytes)
        return bytes(buffer[:end])
    except KafkaError as error:
        return error.code


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("size", [1, 100, 5000, 65536, 1_000_000, SCRATCH_BYTES, SCRATCH_BYTES + 1])
def test_every_size(codec: Codec, size: int) -> None:
    """Small payloads, many blocks, and more than the buffer holds; one after the other in the same buffer."""
    data = os.urandom(size // 2) + bytes(size - size // 2)
    packed = compress(codec, data)
    scratch = Scratch()
    for max_bytes in (ROOMY_BYTES, size, size - 1):
        expected = data if max_bytes >= size else ErrorCode.MESSAGE_TOO_LARGE
        assert outcome(codec, packed, max_bytes, scratch) == expected
    assert outcome(codec, compress(codec, b"next"), 4, scratch) == b"next"


@pytest.mark.parametrize("codec", COMPRESSED)
@settings(max_examples=150)
@given(data=st.data())
def test_spoiled_streams(codec: Codec, data: st.DataObject) -> None:
    """Cut off, changed, doubled or followed by noise: the outcome is that of decompressing."""
    original = data.draw(st.binary(min_size=1, max_size=50)) * data.draw(st.sampled_from([1, 200, 3000]))
    packed = bytearray(compress(codec, original))
    match data.draw(st.sampled_from(["whole", "cut", "changed", "doubled", "followed"])):
        case "cut":
            del packed[data.draw(st.integers(0, len(packed) - 1)) :]
        case "changed":
            packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
        case "doubled":
            packed *= 2
        case "followed":
            packed += data.draw(st.binary(max_size=20))
    scratch = take_scratch()
    result = outcome(codec, bytes(packed), ROOMY_BYTES, scratch)
    put_back(scratch)
    assert result == outcome(codec, bytes(packed), ROOMY_BYTES)


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("extras", [True, False])
def test_every_kind_of_lz4_frame(linked: bool, extras: bool) -> None:
    """Linked and stored blocks, checksums and sizes; and only the first frame is read, as clients do."""
    data = os.urandom(100_000) + b"abc" * 50_000
    packed = lz4.frame.compress(
        data, block_linked=linked, content_checksum=extras, block_checksum=extras, store_size=extras
    )
    scratch = Scratch()
    for payload in (packed, packed + packed, packed + b"tail"):
        assert outcome(Codec.LZ4, payload, ROOMY_BYTES, scratch) == data
    assert outcome(Codec.LZ4, packed[:-1], ROOMY_BYTES, scratch) == ErrorCode.CORRUPT_MESSAGE


def test_streams_of_unknown_size() -> None:
    """Java's zstd stream does not tell the size; librdkafka's Snappy is one bare block."""
    data = os.urandom(1000) * 800
    stream = zstandard.ZstdCompressor().compressobj()
    packed = stream.compress(data) + stream.flush()
    scratch = Scratch()
    assert outcome(Codec.ZSTD, packed, ROOMY_BYTES, scratch) == data
    bare = bytes(cramjam.snappy.compress_raw(data))
    assert outcome(Codec.SNAPPY, bare, ROOMY_BYTES, scratch) == data


def test_nothing_is_decompressed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual payload is unpacked in one call; what cannot be still says why."""
    monkeypatch.setattr(compression, "_DECOMPRESSORS", {})
    scratch = Scratch()
    for codec in COMPRESSED:
        data = os.urandom(100_000)
        assert outcome(codec, compress(codec, data), ROOMY_BYTES, scratch) == data
    monkeypatch.undo()
    with pytest.raises(CorruptBatch, match="gzip"):
        scratch.unpack(Codec.GZIP, memoryview(b"nothing of the kind"), ROOMY_BYTES)


def test_gzip_without_the_fast_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """zlib serves where Intel's library is not to be had."""
    monkeypatch.setitem(sys.modules, "isal", None)
    data = os.urandom(1000) * 100
    assert outcome(Codec.GZIP, compress(Codec.GZIP, data), ROOMY_BYTES, Scratch()) == data
    assert type(compression.gzip_decompressor()[0]).__module__ == "zlib"
