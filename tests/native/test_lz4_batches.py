"""Produce with batches in LZ4 of many blocks: the same is found in them as without compression, or they are left."""

import random
import struct
from types import ModuleType
from typing import Any

import lz4.frame
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.records.builder import build_batch
from ottla.wire.records.header import HEADER_SIZE
from ottla.wire.records.records import Record
from ottla.wire.records.scan import scan_records
from tests.native.test_requests import produce_request, request_frame

LZ4 = 3
LARGEST = 1 << 20
SURELY_READ = 60_000  # bytes of a record
WORDS = [random.Random(seed).randbytes(seed % 40 + 1) for seed in range(50)]


@st.composite
def batches(draw: st.DrawFn) -> tuple[bytes, int]:
    """Some with records that lie in many blocks, and how large the largest is."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    sizes = draw(
        st.lists(st.sampled_from([0, 1, 50, 1000, 7000, 59_000, 66_000, 200_000]), min_size=1, max_size=30)
    )
    sizes *= chance.choice([1, 1, 40])
    made, left = [], LARGEST - 100_000
    for size in sizes:
        if size > left or len(made) == 2000:
            break
        left -= size + 20
        value = b"".join(chance.choices(WORDS, k=size // 20 + 1))[:size]
        if chance.random() < 0.1:
            value = chance.randbytes(size)
        key = None if chance.random() < 0.5 else value[:7]
        headers = (("h", value[:3]),) if chance.random() < 0.1 else ()
        made.append(Record(len(made), 1000 + chance.randrange(10**6), key, value, headers))
    made = made or [Record(0, 1000, None, b"")]
    return build_batch(made), max(len(record.value or b"") for record in made)


def packed(batch: bytes, **settings: Any) -> bytes:
    """The same batch with its records in LZ4; its checksum is not looked at here."""
    body = lz4.frame.compress(batch[HEADER_SIZE:], **settings)
    return with_body(batch, body)


def with_body(batch: bytes, body: bytes) -> bytes:
    header = bytearray(batch[:HEADER_SIZE])
    struct.pack_into(">i", header, 8, HEADER_SIZE + len(body) - 12)
    struct.pack_into(">h", header, 21, LZ4)
    return bytes(header) + body


def found_in(speed: ModuleType, batch: bytes) -> Any:
    """What is told of a batch beside where it lies: keyless records, the least timestamp, and the head."""
    frame = request_frame(produce_request(9, "topic", 0, batch), 9, 1, "client")
    found = speed.read_produce(frame)
    return None if found is None else found[-3:]


@given(
    case=batches(),
    block_size=st.sampled_from([4, 4, 4, 5]),
    linked=st.booleans(),
    store_size=st.booleans(),
    level=st.sampled_from([0, 9]),
)
@settings(max_examples=300, deadline=None)
def test_what_is_read(
    speed: ModuleType, case: tuple[bytes, int], block_size: int, linked: bool, store_size: bool, level: int
) -> None:
    """The same as of the batch without compression; a batch with larger blocks, or a very large record, may be left."""
    batch, largest = case
    lz4_batch = packed(
        batch, block_size=block_size, block_linked=linked, store_size=store_size, compression_level=level
    )
    found = found_in(speed, lz4_batch)
    if found is not None or (block_size == 4 and largest <= SURELY_READ):
        assert found == found_in(speed, batch)


@given(case=batches(), linked=st.booleans(), seed=st.integers(0, 2**32), by_records=st.booleans())
@settings(max_examples=300, deadline=None)
def test_what_is_damaged(
    speed: ModuleType, case: tuple[bytes, int], linked: bool, seed: int, by_records: bool
) -> None:
    """It is refused, or there is nothing wrong with it after all: then the usual way finds the same."""
    batch, _ = case
    chance = random.Random(seed)

    def damage(data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            if changed and chance.random() < 0.8:
                changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
            elif chance.random() < 0.5:
                del changed[chance.randrange(len(changed) + 1) :]
            else:
                changed += chance.randbytes(chance.randint(1, 9))
        return bytes(changed)

    if by_records:
        records = damage(batch[HEADER_SIZE:])
        damaged = packed(batch[:HEADER_SIZE] + records, block_size=4, block_linked=linked)
    else:
        damaged = with_body(
            batch, damage(lz4.frame.compress(batch[HEADER_SIZE:], block_size=4, block_linked=linked))
        )
    found = found_in(speed, damaged)
    if found is None:
        return
    text = lz4.frame.decompress(damaged[HEADER_SIZE:])
    (count,) = struct.unpack_from(">i", batch, 57)
    (base_timestamp,) = struct.unpack_from(">q", batch, 27)
    scan = scan_records(text, len(text), count)
    assert found[:2] == (scan.keyless, base_timestamp + scan.least_timestamp_delta)
    assert scan.is_numbered


def test_a_bomb(speed: ModuleType) -> None:
    """Which unpacks to more than a megabyte is left to who may take their time."""
    batch = build_batch([Record(number, 1000, None, bytes(60_000)) for number in range(40)])
    assert found_in(speed, packed(batch, block_size=4)) is None
