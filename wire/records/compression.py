"""The codecs of record batches: gzip, Snappy, LZ4 and Zstandard, as Kafka's clients write and read them.

    GZIP    one or more gzip members
    SNAPPY  Java's stream (magic, two versions, then blocks with a 4-byte length each), or, as some clients
            write it, one bare Snappy block
    LZ4     one LZ4 frame of independent blocks (Java reads no linked ones; we do)
    ZSTD    one or more Zstandard frames

Everything that is decompressed comes from a client, so nothing is allocated on the word of its header:
`decompress_chunks` yields pieces of bounded size, and `decompress` stops at `max_bytes`. The libraries are
imported at first use, because a broker that only passes batches through never needs them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any

from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.records.header import CorruptBatch

Buffer = bytes | bytearray | memoryview

CHUNK_BYTES = 256 * 1024

SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_SNAPPY_HEADER = SNAPPY_MAGIC + struct.pack(">ii", 1, 1)  # version, and the oldest version that can read it
SNAPPY_HEADER_BYTES = len(_SNAPPY_HEADER)
_SNAPPY_BLOCK_BYTES = 32 * 1024  # what Java's stream writes
_SNAPPY_GREATEST_RATIO = 24  # no element of the format makes more than 64 bytes of 3
_ZSTD_GREATEST_WINDOW_BYTES = 1 << 27  # the library's own limit, and that of Java's binding
_ZSTD_SKIPPABLE_MAGIC = 0x184D2A50
_unpack_int32 = struct.Struct(">i").unpack_from


class Codec(IntEnum):
    """The number in a batch's codec bits; the names are those of compression.type."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """One block of compressed records; `level` means what it means in compression.<codec>.level."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec not in _COMPRESSORS:
        raise _unknown(codec)
    return _COMPRESSORS[codec](data, level)


def decompress(codec: int, data: Buffer, max_bytes: int) -> bytes:
    """The records of a compressed payload; MESSAGE_TOO_LARGE as soon as they exceed `max_bytes`."""
    chunks = []
    size = 0
    for chunk in decompress_chunks(codec, data):
        size += len(chunk)
        if size > max_bytes:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"records unpack to over {max_bytes} bytes")
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def decompress_chunks(codec: int, data: Buffer) -> Iterator[bytes]:
    """The decompressed bytes piece by piece, each of bounded size; CorruptBatch where it is broken."""
    if codec == Codec.NONE:
        return iter((bytes(data),))
    if codec not in _DECOMPRESSORS:
        raise _unknown(codec)
    return _DECOMPRESSORS[codec](data)


def _unknown(codec: int) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown compression codec {codec}")


def _compress_gzip(data: Buffer, level: int | None) -> bytes:
    import zlib

    compressor = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    return compressor.compress(data) + compressor.flush()


def gzip_decompressor() -> tuple[Any, type[Exception]]:
    """A decompressor with the interface of zlib's, and what it raises. Intel's takes less than half the time; it is not
    made for every processor."""
    module: Any
    try:
        from isal import isal_zlib as module
    except ImportError:
        import zlib as module
    return module.decompressobj(31), module.error


def _gzip_chunks(data: Buffer) -> Iterator[bytes]:
    rest: Buffer = data
    while True:
        decompressor, broken = gzip_decompressor()
        while not decompressor.eof:
            try:
                chunk = decompressor.decompress(rest, CHUNK_BYTES)
            except broken as error:
                raise CorruptBatch(f"gzip: {error}") from None
            rest = decompressor.unconsumed_tail
            if chunk:
                yield chunk
            elif not rest and not decompressor.eof:
                raise CorruptBatch("gzip: the stream is cut off")
        rest = decompressor.unused_data
        if rest[:2] != b"\x1f\x8b":
            return


def _compress_snappy(data: Buffer, level: int | None) -> bytes:
    import cramjam

    view = memoryview(data)
    pieces = [_SNAPPY_HEADER]
    for start in range(0, len(view), _SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _SNAPPY_BLOCK_BYTES]))
        pieces.append(len(block).to_bytes(4, "big"))
        pieces.append(block)
    return b"".join(pieces)


def _snappy_chunks(data: Buffer) -> Iterator[bytes]:
    view = memoryview(data)
    if view[:8] != SNAPPY_MAGIC:
        yield _snappy_block(view)
        return
    pos = 0
    end = len(view)
    while pos < end:
        if view[pos : pos + 8] == SNAPPY_MAGIC:  # a new stream may begin after each block, as Java allows
            pos += len(_SNAPPY_HEADER)
            continue
        if end - pos < 4:
            raise CorruptBatch("snappy: the stream is cut off")
        length = _unpack_int32(view, pos)[0]
        pos += 4
        if length < 0 or length > end - pos:
            raise CorruptBatch(f"snappy: a block of {length} bytes where {end - pos} are left")
        yield _snappy_block(view[pos : pos + length])
        pos += length
    if pos > end:
        raise CorruptBatch("snappy: the stream is cut off")


def _snappy_block(block: memoryview) -> bytes:
    import cramjam

    claimed = 0
    for index in range(5):
        if index >= len(block):
            raise CorruptBatch("snappy: the block is cut off")
        byte = block[index]
        claimed |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            break
    if claimed > len(block) * _SNAPPY_GREATEST_RATIO:
        raise CorruptBatch(f"snappy: a block of {len(block)} bytes cannot hold {claimed}")
    try:
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError:
        raise CorruptBatch("snappy: the block is corrupt") from None


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    import lz4.frame

    # Java takes its fast compressor at its default level, 9, and its high compressor at any other.
    compressed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level is None or level == 9 else min(max(level, 3), 12),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def _lz4_chunks(data: Buffer) -> Iterator[bytes]:
    import lz4.frame

    decompressor = lz4.frame.LZ4FrameDecompressor()
    feed: Buffer = data
    while not decompressor.eof:
        try:
            chunk = decompressor.decompress(feed, CHUNK_BYTES)
        except RuntimeError as error:
            raise CorruptBatch(f"lz4: {error}") from None
        feed = b""
        if chunk:
            yield chunk
        elif not decompressor.eof:
            raise CorruptBatch("lz4: the frame is cut off")


# Making a compressor or a decompressor takes longer than what it does with a small batch, so they are kept. One serves
# one stream at a time: it is taken out of its list, which is atomic, and put back at the end of the stream.
_idle_zstd_compressors: dict[int, list[Any]] = {}  # by level
_idle_zstd_decompressors: list[Any] = []


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    import zstandard

    level = 3 if level is None else level
    idle = _idle_zstd_compressors.setdefault(level, [])
    try:
        compressor = idle.pop()
    except IndexError:
        compressor = zstandard.ZstdCompressor(level=level)
    compressed: bytes = compressor.compress(data)
    idle.append(compressor)
    return compressed


def _zstd_chunks(data: Buffer) -> Iterator[bytes]:
    import zstandard

    try:
        decompressor = _idle_zstd_decompressors.pop()
    except IndexError:
        decompressor = zstd_decompressor()
    reader = decompressor.stream_reader(data, read_across_frames=True)
    size = min(CHUNK_BYTES, 32 * len(data))
    try:
        while chunk := reader.read(size):
            yield chunk
    except zstandard.ZstdError as error:
        raise CorruptBatch(f"zstd: {error}") from None
    check_zstd_end(memoryview(data))
    _idle_zstd_decompressors.append(decompressor)


def zstd_decompressor() -> Any:
    """A decompressor for one stream after the other."""
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_GREATEST_WINDOW_BYTES)


def check_zstd_end(view: memoryview) -> None:
    """The library ends quietly where its input ends; only the block headers tell a frame that was cut off."""
    import zstandard

    pos = 0
    try:
        while pos < len(view):
            if int.from_bytes(view[pos : pos + 4], "little") & ~0xF == _ZSTD_SKIPPABLE_MAGIC:
                pos += 8 + int.from_bytes(view[pos + 4 : pos + 8], "little")
                continue
            parameters = zstandard.get_frame_parameters(view[pos:])
            pos += zstandard.frame_header_size(view[pos:])
            last = False
            while not last:
                header = int.from_bytes(view[pos : pos + 3], "little")
                last = bool(header & 1)
                is_repeated_byte = (header >> 1) & 3 == 1
                pos += 3 + (1 if is_repeated_byte else header >> 3)
                if pos > len(view):
                    raise CorruptBatch("zstd: the frame is cut off")
            if parameters.has_checksum:
                pos += 4
    except zstandard.ZstdError as error:
        raise CorruptBatch(f"zstd: {error}") from None
    if pos != len(view) or pos == 0:
        raise CorruptBatch("zstd: the frame is cut off")


_COMPRESSORS: dict[int, Callable[[Buffer, int | None], bytes]] = {
    Codec.GZIP: _compress_gzip,
    Codec.SNAPPY: _compress_snappy,
    Codec.LZ4: _compress_lz4,
    Codec.ZSTD: _compress_zstd,
}
_DECOMPRESSORS: dict[int, Callable[[Buffer], Iterator[bytes]]] = {
    Codec.GZIP: _gzip_chunks,
    Codec.SNAPPY: _snappy_chunks,
    Codec.LZ4: _lz4_chunks,
    Codec.ZSTD: _zstd_chunks,
}
