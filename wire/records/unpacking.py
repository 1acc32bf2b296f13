"""Decompressing a whole batch into memory that is used again: what every compressed produce needs.

Most of what decompressing a megabyte costs is not the codec: it is fresh memory, which the system has to clear and map
page by page, and the copies between pieces. So the usual payload, one stream that fits into a few megabytes, is
decompressed in one call into a buffer that stays. LZ4 is decoded by native/lz4.c where that is compiled: the libraries
copy what they decode once or twice on its way there. Whatever is unusual (several streams, a larger one, a broken one)
is left to `compression.decompress`, which also knows how to say what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.native import speed
from ottla.wire.records.compression import (
    SNAPPY_HEADER_BYTES,
    SNAPPY_MAGIC,
    Buffer,
    Codec,
    check_zstd_end,
    decompress,
    gzip_decompressor,
    zstd_decompressor,
)
from ottla.wire.records.header import CorruptBatch

SCRATCH_BYTES: Final = 4 * 1024 * 1024
_SMALL_BYTES: Final = 2048

_LZ4_MAGIC: Final = 0x184D2204
_LZ4_CONTENT_CHECKSUM: Final = 0x04
_LZ4_CONTENT_SIZE: Final = 0x08
_LZ4_BLOCK_CHECKSUM: Final = 0x10
_LZ4_BLOCK_STORED: Final = 0x80000000

Unpacked = tuple[Buffer, int]


class Scratch:
    """A buffer for one batch at a time; what was unpacked is there until the next one is."""

    __slots__ = ("_buffer", "_zstd")

    def __init__(self) -> None:
        self._buffer = bytearray(SCRATCH_BYTES)
        self._zstd: Any = None

    def unpack(self, codec: int, data: memoryview, max_bytes: int) -> Unpacked:
        """A buffer that begins with the records of a compressed payload, and where they end in it.

        MESSAGE_TOO_LARGE if they exceed `max_bytes`, CorruptBatch if they cannot be decompressed.
        """
        unpacker = _UNPACKERS.get(codec)
        if unpacker is not None and max_bytes > 0:
            room = memoryview(self._buffer)
            if max_bytes < SCRATCH_BYTES:
                room = room[:max_bytes]
            unpacked = unpacker(self, data, room)
            if unpacked is not None:
                return unpacked
        records = decompress(codec, data, max_bytes)
        return records, len(records)

    def _unpack_gzip(self, data: memoryview, room: memoryview) -> Unpacked | None:
        decompressor, error = gzip_decompressor()
        try:
            records: bytes = decompressor.decompress(data, len(room))
        except error:
            return None
        if not decompressor.eof or decompressor.unused_data:
            return None
        return records, len(records)

    def _unpack_snappy(self, data: memoryview, room: memoryview) -> Unpacked | None:
        import cramjam

        into = cramjam.snappy.decompress_raw_into
        try:
            if data[:8] != SNAPPY_MAGIC:
                return self._buffer, into(data, room)
            pos = SNAPPY_HEADER_BYTES
            end = len(data)
            size = 0
            while pos < end:
                begin = pos + 4
                pos = begin + int.from_bytes(data[pos:begin], "big")
                if pos > end:
                    return None
                size += into(data[begin:pos], room[size:])
        except cramjam.DecompressionError:
            return None
        return (self._buffer, size) if pos == end else None

    def _unpack_lz4(self, data: memoryview, room: memoryview) -> Unpacked | None:
        if speed is not None:
            size: int | None = speed.unpack_lz4(data, room)
            if size is not None:
                return self._buffer, size
        if len(data) <= _SMALL_BYTES:
            import lz4.frame

            try:
                records: bytes = lz4.frame.decompress(data)
            except RuntimeError:
                return None
            return (records, len(records)) if len(records) <= len(room) else None
        import cramjam

        if _lz4_frame_bytes(data) != len(data):
            return None
        try:
            return self._buffer, cramjam.lz4.decompress_into(data, room)
        except cramjam.DecompressionError:
            return None

    def _unpack_zstd(self, data: memoryview, room: memoryview) -> Unpacked | None:
        import zstandard

        if self._zstd is None:
            self._zstd = zstd_decompressor()
        reader = self._zstd.stream_reader(data, read_across_frames=True)
        try:
            size: int = reader.readinto(room)
            check_zstd_end(data)
        except (zstandard.ZstdError, CorruptBatch):
            return None
        return (self._buffer, size) if size < len(room) else None


_UNPACKERS: Final[dict[int, Callable[[Scratch, memoryview, memoryview], Unpacked | None]]] = {
    Codec.GZIP: Scratch._unpack_gzip,
    Codec.SNAPPY: Scratch._unpack_snappy,
    Codec.LZ4: Scratch._unpack_lz4,
    Codec.ZSTD: Scratch._unpack_zstd,
}

# Taking one out of the list and putting it back are atomic, so that the event loop and worker threads share them; there
# are never more than have been in use at once.
_idle: list[Scratch] = []


def take_scratch() -> Scratch:
    """A buffer for the caller alone, until it is put back."""
    try:
        return _idle.pop()
    except IndexError:
        return Scratch()


def put_back(scratch: Scratch) -> None:
    """What was unpacked into it must not be used any more."""
    _idle.append(scratch)


def _lz4_frame_bytes(data: memoryview) -> int:
    """How long the LZ4 frame is that `data` begins with, or 0 if it is cut off or none. The decompressor would read
    frame after frame; the clients read the first."""
    end = len(data)
    if end < 7 or int.from_bytes(data[:4], "little") != _LZ4_MAGIC:
        return 0
    flags = data[4]
    behind_block = 4 if flags & _LZ4_BLOCK_CHECKSUM else 0
    pos = 7 + (8 if flags & _LZ4_CONTENT_SIZE else 0)
    while pos + 4 <= end:
        size = int.from_bytes(data[pos : pos + 4], "little")
        pos += 4
        if size == 0:
            return pos + (4 if flags & _LZ4_CONTENT_CHECKSUM else 0)
        pos += (size & ~_LZ4_BLOCK_STORED) + behind_block
    return 0
