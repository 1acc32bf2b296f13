"""The compiled decoder of LZ4 frames makes of them what the library makes, or leaves them to it."""

import random
from types import ModuleType
from typing import Any

import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.errors import KafkaError
from ottla.wire.records import unpacking
from ottla.wire.records.compression import Codec
from ottla.wire.records.unpacking import Scratch

WORDS = [random.Random(seed).randbytes(seed % 40 + 1) for seed in range(50)]


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Bytes that compress more or less well: far and near repetitions, runs, noise."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    pieces = []
    for _ in range(draw(st.integers(0, 60))):
        kind = chance.randrange(6)
        if kind == 0:
            pieces.append(chance.randbytes(chance.choice([1, 5, 14, 15, 16, 40, 63, 64, 65, 300, 3000])))
        elif kind == 1:
            pieces.append(chance.randbytes(chance.randint(1, 20)) * chance.choice([2, 10, 400, 9000]))
        else:
            pieces += chance.choices(WORDS, k=chance.randint(1, 300))
    return b"".join(pieces)


@st.composite
def frames(draw: st.DrawFn) -> tuple[bytes, bytes, bool]:
    """A text, a frame of it, and whether the frame is one that clients write."""
    text = draw(texts())
    has_checksum, has_block_checksum = draw(st.integers(0, 7)) == 0, draw(st.integers(0, 7)) == 0
    frame = lz4.frame.compress(
        text,
        compression_level=draw(st.sampled_from([0, 0, 9, -5])),
        block_size=draw(st.sampled_from([4, 4, 5, 6, 7])),
        block_linked=draw(st.booleans()),
        store_size=draw(st.booleans()),
        content_checksum=has_checksum,
        block_checksum=has_block_checksum,
    )
    return text, frame, not has_checksum and not has_block_checksum


@given(frames())
@settings(max_examples=300)
def test_frames_of_clients_are_unpacked(speed: ModuleType, case: tuple[bytes, bytes, bool]) -> None:
    """Into the room they are given, and nothing behind it is touched."""
    text, frame, is_usual = case
    room = bytearray(b"\xa5" * (len(text) + 200))
    size = speed.unpack_lz4(frame, memoryview(room)[: len(text) + 100])
    assert size == (len(text) if is_usual else None)
    if is_usual:
        assert room[:size] == text
    assert room[-100:] == b"\xa5" * 100


@given(texts(), st.data())
@settings(max_examples=100)
def test_blocks_that_are_unpacked_together(speed: ModuleType, text: bytes, data: st.DataObject) -> None:
    """Also where one of them is smaller than it may be, or not compressed, and where one is damaged."""
    compressor = lz4.frame.LZ4FrameCompressor(block_linked=False, auto_flush=True)
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    whole, frame = b"", bytearray(compressor.begin())
    for _ in range(data.draw(st.integers(3, 9))):
        start = chance.randrange(len(text) + 1)
        piece = (text[start:] + chance.randbytes(chance.choice([0, 0, 70_000])) + text)[:65536]
        frame += compressor.compress(piece[: chance.choice([65536, 65536, 65535, 1000, 1])])
        whole = lz4.frame.decompress(bytes(frame) + b"\0\0\0\0")
    frame += compressor.flush()
    room = bytearray(len(whole) + 65536)
    assert speed.unpack_lz4(frame, room) == len(whole)
    assert room[: len(whole)] == whole
    place = chance.randrange(len(frame))
    frame[place] ^= 1 << chance.randrange(8)
    size = speed.unpack_lz4(frame, room)
    if size is not None:
        assert room[:size] == lz4.frame.decompress(bytes(frame))


@given(frames(), st.integers(0, 120))
def test_what_does_not_fit_is_left(speed: ModuleType, case: tuple[bytes, bytes, bool], missing: int) -> None:
    """Also where it would fit exactly, it is right or left to the library."""
    text, frame, _ = case
    room = bytearray(max(len(text) - missing, 0))
    size = speed.unpack_lz4(frame, room)
    assert size is None or (size == len(text) == len(room) and room == text)


@given(frames(), st.data())
@settings(max_examples=500)
def test_damaged_frames_are_judged_alike(
    speed: ModuleType, case: tuple[bytes, bytes, bool], data: st.DataObject
) -> None:
    """The same bytes or the same error come out of a batch with and without what is compiled."""
    _, frame, _ = case
    damaged = bytearray(frame)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, min(30, len(damaged) - 1)) | st.integers(0, len(damaged) - 1))
        damaged[place] = data.draw(st.integers(0, 255) | st.sampled_from([0, 0x0F, 0xF0, 0xFF]))
    del damaged[data.draw(st.integers(len(damaged) // 2, len(damaged)) | st.just(len(damaged))) :]

    def unpack() -> Any:
        try:
            buffer, size = Scratch().unpack(Codec.LZ4, memoryview(damaged), 1 << 24)
        except KafkaError as error:
            return error.code, error.detail
        return bytes(memoryview(buffer)[:size])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unpacking, "speed", None)
        expected = unpack()
        patch.setattr(unpacking, "speed", speed)
        assert unpack() == expected


def test_an_empty_frame(speed: ModuleType) -> None:
    """Nothing but its end."""
    assert speed.unpack_lz4(lz4.frame.compress(b""), bytearray(10)) == 0


def test_what_is_no_buffer_is_refused(speed: ModuleType) -> None:
    """By an exception, as from a function in Python; nor is there room in bytes."""
    for arguments in [(), (b"",), ("", bytearray(1)), (b"", b"room"), (b"", None)]:
        with pytest.raises((TypeError, BufferError)):
            speed.unpack_lz4(*arguments)
