"""Codecs: both framings of Snappy, streams cut off or spoiled, and bombs."""

from __future__ import annotations

import gzip
import os
import resource
import struct
import subprocess
import sys
import zlib

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records import BatchView, Codec, CorruptBatch, build_batch, compress, decompress, iter_records
from ottla.wire.records.compression import CHUNK_BYTES, SNAPPY_MAGIC, decompress_chunks

COMPRESSED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
BOMB_BYTES = 256 * 1024 * 1024


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("size", [0, 1, 32 * 1024, 32 * 1024 + 1, 1_000_000])
def test_round_trip(codec: Codec, size: int) -> None:
    """Data of no bytes, one block, and many blocks comes back, from any kind of buffer."""
    data = os.urandom(size // 2) + bytes(size - size // 2)
    packed = compress(codec, memoryview(data))
    assert decompress(codec, packed, size) == data
    assert decompress(codec, memoryview(bytearray(packed)), size) == data


@pytest.mark.parametrize("codec", COMPRESSED)
@settings(max_examples=60)
@given(data=st.data())
def test_a_stream_that_is_cut_off(codec: Codec, data: st.DataObject) -> None:
    """A part of a stream is corrupt, or a shorter whole for the framed Snappy, never the whole."""
    original = bytes(range(256)) * 2 + bytes(70_000)
    packed = compress(codec, original)
    cut = packed[: data.draw(st.integers(0, len(packed) - 1))]
    try:
        assert len(decompress(codec, cut, len(original))) < len(original)
        assert codec == Codec.SNAPPY
    except CorruptBatch:
        pass


@pytest.mark.parametrize("codec", COMPRESSED)
def test_one_byte_over_the_limit(codec: Codec) -> None:
    """The limit is exact."""
    packed = compress(codec, bytes(100_000))
    assert len(decompress(codec, packed, 100_000)) == 100_000
    with pytest.raises(KafkaError) as caught:
        decompress(codec, packed, 99_999)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [5, 6, 7, -1])
def test_unknown_codecs(codec: int) -> None:
    """A number that names no codec is an unsupported compression type."""
    for call in (lambda: compress(codec, b""), lambda: decompress(codec, b"", 1)):
        with pytest.raises(KafkaError) as caught:
            call()
        assert caught.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_snappy_of_java_and_bare() -> None:
    """We write Java's framing and read it, streams joined together, and a bare block."""
    import snappy

    assert compress(Codec.SNAPPY, b"abc").startswith(SNAPPY_MAGIC + struct.pack(">ii", 1, 1))
    joined = compress(Codec.SNAPPY, b"abc") + compress(Codec.SNAPPY, b"def")
    assert decompress(Codec.SNAPPY, joined, 6) == b"abcdef"
    assert decompress(Codec.SNAPPY, snappy.compress(b"abc" * 1000), 3000) == b"abc" * 1000


def test_a_snappy_block_that_claims_too_much() -> None:
    """No buffer is made for a size that the block cannot hold."""
    huge = b"\xff\xff\xff\xff\x0f" + bytes(10)
    for packed in (huge, SNAPPY_MAGIC + struct.pack(">iii", 1, 1, len(huge)) + huge):
        with pytest.raises(CorruptBatch, match="cannot hold"):
            decompress(Codec.SNAPPY, packed, 2**40)


def test_gzip_members_and_what_follows_them() -> None:
    """Members one after the other are one stream; what follows the last is passed over, as in Java."""
    assert decompress(Codec.GZIP, gzip.compress(b"abc") + gzip.compress(b"def") + b"tail", 6) == b"abcdef"


def test_zstd_frames() -> None:
    """Frames with a checksum, without a size, skippable ones and several in a row are read."""
    whole = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(b"abc" * 50_000)
    skippable = struct.pack("<II", 0x184D2A53, 5) + b"hello"
    assert decompress(Codec.ZSTD, skippable + whole + compress(Codec.ZSTD, b"end"), 10**6).endswith(b"abcend")
    with pytest.raises(CorruptBatch):
        decompress(Codec.ZSTD, whole[:-1], 10**6)
    with pytest.raises(CorruptBatch):
        decompress(Codec.ZSTD, b"", 10**6)


@pytest.mark.parametrize("level", [None, 1, 9])
def test_zstd_compressors_are_used_again(level: int | None) -> None:
    """What one writes does not depend on what it wrote before, and each level has its own."""
    payloads = [bytes(range(256)) * 40, b"", os.urandom(3000), b"again and again " * 500]
    expected = [
        zstandard.ZstdCompressor(level=3 if level is None else level).compress(each) for each in payloads
    ]
    for _ in range(2):
        assert [compress(Codec.ZSTD, each, level) for each in payloads] == expected


def test_lz4_frames_of_other_writers() -> None:
    """Linked blocks, checksums and a stored size are read, although we write none."""
    import lz4.frame

    data = os.urandom(1000) * 200
    packed = lz4.frame.compress(data, content_checksum=True, block_checksum=True, block_linked=True)
    assert decompress(Codec.LZ4, packed, len(data)) == data


def bomb(codec: Codec) -> bytes:
    """A quarter of a gigabyte of zeros, made without holding it."""
    piece = bytes(1024 * 1024)
    pieces = BOMB_BYTES // len(piece)
    if codec == Codec.GZIP:
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        return b"".join(packer.compress(piece) for _ in range(pieces)) + packer.flush()
    if codec == Codec.ZSTD:
        frame = zstandard.ZstdCompressor().compressobj()
        return b"".join(frame.compress(piece) for _ in range(pieces)) + frame.flush()
    if codec == Codec.LZ4:
        import lz4.frame

        with lz4.frame.LZ4FrameCompressor() as stream:
            return stream.begin() + b"".join(stream.compress(piece) for _ in range(pieces)) + stream.flush()
    block = compress(Codec.SNAPPY, piece)
    return block[:16] + block[16:] * pieces


@pytest.mark.parametrize("codec", COMPRESSED)
def test_bombs_are_defused(codec: Codec) -> None:
    """A bomb costs a few megabytes, whether it is refused, read through, or taken for records."""
    packed = bomb(codec)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(KafkaError) as caught:
        decompress(codec, packed, 10_000_000)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    sizes = [len(chunk) for chunk in decompress_chunks(codec, packed)]
    assert sum(sizes) == BOMB_BYTES
    assert max(sizes) <= CHUNK_BYTES
    batch = bytearray(build_batch([], last_offset=0, codec=codec) + packed)
    batch[8:12] = struct.pack(">i", len(batch) - 12)
    batch[57:61] = struct.pack(">i", 1)
    with pytest.raises(KafkaError):
        list(iter_records(BatchView(memoryview(batch))))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 64 * 1024  # in KiB


def test_codecs_are_imported_at_first_use() -> None:
    """Importing the records room loads no codec library, so a broker starts without them."""
    program = (
        "import sys, ottla.wire.records\n"
        "print([name for name in ('zstandard', 'lz4', 'snappy', 'cramjam') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"
