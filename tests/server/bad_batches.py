"""Produce requests with batches that are wrong, each with the error code that the producer must get.

The batches come from the builder and are then spoiled; unless the checksum is what is wrong, it is made right
again, as a liar would. Codes are those of Apache Kafka 4.3.0 but where `kafka_says` gives its own answer.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from ottla.log_store.validation import MAX_OPENED_BYTES
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Codec, Record, build_batch, patch_timestamp
from tests.server.bad_frames import TOPIC, request

NOW_MS = 1_700_000_000_000
FIELDS = {  # position and layout in the batch header
    "base_offset": (0, ">q"),
    "batch_length": (8, ">i"),
    "magic": (16, ">b"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "records_count": (57, ">i"),
}


@dataclass(frozen=True, slots=True)
class BadBatch:
    """The records of a Produce request, and the code in its answer; NONE where the batch must be taken."""

    name: str
    make: Callable[[], bytes | None]
    code: ErrorCode
    kafka_says: str = ""
    version: int = 9
    topic: str = TOPIC
    partition: int = 0
    acks: int = -1
    opened_bytes: int = 0
    """As much may be held of it decompressed."""

    def request(self) -> bytes:
        return produce_request(
            self.make(), version=self.version, topic=self.topic, partition=self.partition, acks=self.acks
        )


def produce_request(
    records: bytes | None, *, version: int = 9, topic: str = TOPIC, partition: int = 0, acks: int = -1
) -> bytes:
    data = PartitionProduceData(index=partition, records=records)
    message = ProduceRequest(
        acks=acks, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    return request(message, version)


def good_batch(count: int = 1, codec: int = Codec.NONE, value: bytes = b"v", **options: int) -> bytes:
    records = [Record(offset, NOW_MS, b"k", value) for offset in range(count)]
    return build_batch(records, codec=codec, **options)


def lying_batch(count: int = 3, codec: int = Codec.NONE, **fields: int) -> bytes:
    """A batch with other numbers in its header and a checksum that says all is well."""
    batch = bytearray(good_batch(count, codec))
    for name, number in fields.items():
        position, layout = FIELDS[name]
        struct.pack_into(layout, batch, position, number)
    return with_right_crc(batch)


def with_right_crc(batch: bytearray) -> bytes:
    claimed = bytes(batch[8:12])
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    attributes = bytes(batch[21:23])
    patch_timestamp(batch, 0, 1 if batch[22] & 0x08 else 0, NOW_MS)
    assert bytes(batch[21:23]) == attributes
    batch[8:12] = claimed
    return bytes(batch)


def batch_of(payload: bytes, count: int = 1, codec: int = Codec.NONE) -> bytes:
    """A batch with a right header around any payload."""
    batch = bytearray(good_batch(count, codec)[:61] + payload)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    return with_right_crc(batch)


def corrupt_crc() -> bytes:
    batch = bytearray(good_batch())
    batch[-1] ^= 0xFF
    return bytes(batch)


def batch_of_tomorrow() -> bytes:
    return build_batch([Record(0, int(time.time() * 1000) + 86_400_000, b"k", b"v")])


def zstd_bomb() -> bytes:
    """A record of 2 GiB - 100 zero bytes in about 65 KB, well-formed in every way."""
    import zstandard

    size = 2**31 - 200
    body_start = bytes((0, 0, 0, 1))  # attributes, deltas, no key
    value_length = _varint(size)
    length = len(body_start) + len(value_length) + size + 1
    frame = zstandard.ZstdCompressor().compressobj()
    packed = [frame.compress(_varint(length) + body_start + value_length)]
    zeros = bytes(1024 * 1024)
    packed += [frame.compress(zeros) for _ in range(size // len(zeros))]
    packed += [frame.compress(bytes(size % len(zeros) + 1)), frame.flush()]
    return batch_of(b"".join(packed), codec=Codec.ZSTD)


def _varint(number: int) -> bytes:
    out = bytearray()
    raw = number << 1
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


CORRUPT = ErrorCode.CORRUPT_MESSAGE
INVALID = ErrorCode.INVALID_RECORD
UNSUPPORTED = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

BAD_BATCHES = [
    BadBatch("corrupt crc", corrupt_crc, CORRUPT),
    BadBatch("corrupt crc, old version", corrupt_crc, CORRUPT, version=3),
    BadBatch("null records", lambda: None, INVALID, kafka_says="no answer"),
    BadBatch("null records, old version", lambda: None, INVALID, version=3, kafka_says="no answer"),
    BadBatch("no records", lambda: b"", INVALID),
    BadBatch("ten bytes", lambda: good_batch()[:10], INVALID),
    BadBatch("half a batch", lambda: good_batch(20)[:100], INVALID),
    BadBatch("two batches", lambda: good_batch() * 2, INVALID),
    # Headers that lie.
    BadBatch("one record more than there are", lambda: lying_batch(records_count=4), INVALID),
    BadBatch("one record less than there are", lambda: lying_batch(records_count=2), INVALID),
    BadBatch("no records by the count", lambda: lying_batch(records_count=0), INVALID),
    BadBatch("a negative count", lambda: lying_batch(records_count=-1), INVALID),
    BadBatch("two billion records", lambda: lying_batch(records_count=2**31 - 1), INVALID),
    BadBatch(
        "a consistent lie, more",
        lambda: lying_batch(records_count=4, last_offset_delta=3),
        INVALID,
    ),
    BadBatch(
        "a consistent lie, less",
        lambda: lying_batch(records_count=2, last_offset_delta=1),
        INVALID,
    ),
    BadBatch(
        "a consistent lie of billions",
        lambda: lying_batch(records_count=2**31 - 1, last_offset_delta=2**31 - 2),
        INVALID,
    ),
    BadBatch(
        "a lie of billions, compressed",
        lambda: lying_batch(codec=Codec.ZSTD, records_count=2**31 - 1, last_offset_delta=2**31 - 2),
        INVALID,
    ),
    BadBatch("last offset too high", lambda: lying_batch(last_offset_delta=3), INVALID),
    BadBatch("last offset too low", lambda: lying_batch(last_offset_delta=1), INVALID),
    BadBatch("a negative last offset", lambda: lying_batch(last_offset_delta=-1), INVALID),
    BadBatch("the greatest last offset", lambda: lying_batch(last_offset_delta=2**31 - 1), INVALID),
    BadBatch("a negative batch length", lambda: lying_batch(batch_length=-1), CORRUPT),
    BadBatch("batch length 0", lambda: lying_batch(batch_length=0), CORRUPT),
    BadBatch("batch length below a header", lambda: lying_batch(batch_length=48), CORRUPT),
    BadBatch("batch length beyond the records", lambda: lying_batch(batch_length=5000), INVALID),
    BadBatch(
        "the greatest batch length",
        lambda: lying_batch(batch_length=2**31 - 1),
        INVALID,
        kafka_says="UNKNOWN_SERVER_ERROR",
    ),
    BadBatch("a base offset", lambda: lying_batch(base_offset=5), INVALID),
    BadBatch("magic 0", lambda: lying_batch(magic=0), INVALID),
    BadBatch("magic 1", lambda: lying_batch(magic=1), INVALID),
    BadBatch("magic 3", lambda: lying_batch(magic=3), CORRUPT),
    BadBatch("magic -1", lambda: lying_batch(magic=-1), CORRUPT),
    BadBatch("codec 5", lambda: lying_batch(attributes=5), UNSUPPORTED, kafka_says="UNKNOWN_SERVER_ERROR"),
    BadBatch("codec 6", lambda: lying_batch(attributes=6), UNSUPPORTED, kafka_says="UNKNOWN_SERVER_ERROR"),
    BadBatch("codec 7", lambda: lying_batch(attributes=7), UNSUPPORTED, kafka_says="UNKNOWN_SERVER_ERROR"),
    BadBatch("zstd before its time", lambda: good_batch(codec=Codec.ZSTD), UNSUPPORTED, version=3),
    BadBatch("a control batch", lambda: lying_batch(attributes=0x20), INVALID),
    BadBatch(
        "a producer without a sequence",
        lambda: lying_batch(producer_id=5, producer_epoch=0, base_sequence=-1),
        INVALID,
    ),
    # Records that lie.
    BadBatch("a record of no bytes", lambda: batch_of(b"\x00"), INVALID),
    BadBatch("a record of negative length", lambda: batch_of(b"\x01" + bytes(20)), INVALID),
    BadBatch(
        "a record longer than the batch", lambda: batch_of(b"\xfe\xff\xff\xff\x0f" + bytes(20)), INVALID
    ),
    BadBatch(
        "a length without an end",
        lambda: batch_of(b"\xff" * 20),
        INVALID,
        kafka_says="UNKNOWN_SERVER_ERROR",
    ),
    BadBatch("bytes behind the last record", lambda: batch_of(good_batch()[61:] + b"\0"), INVALID),
    # Compressed streams that lie.
    BadBatch(
        "a consistent lie, more, compressed",
        lambda: lying_batch(codec=Codec.LZ4, records_count=4, last_offset_delta=3),
        INVALID,
    ),
    BadBatch(
        "a consistent lie, less, compressed",
        lambda: lying_batch(codec=Codec.SNAPPY, records_count=2, last_offset_delta=1),
        INVALID,
    ),
    BadBatch(
        "noise instead of a stream",
        lambda: batch_of(b"noise that no codec reads", codec=Codec.GZIP),
        INVALID,
        kafka_says="UNKNOWN_SERVER_ERROR",
    ),
    BadBatch(
        "half a stream",
        lambda: batch_of(good_batch(50, Codec.ZSTD)[61:-5], 50, Codec.ZSTD),
        INVALID,
        kafka_says="UNKNOWN_SERVER_ERROR",
    ),
    BadBatch(
        "a zstd bomb of 2 GiB",
        zstd_bomb,
        ErrorCode.MESSAGE_TOO_LARGE,
        kafka_says="NONE",
        opened_bytes=MAX_OPENED_BYTES,
    ),
    # Sizes, places and requests.
    BadBatch("a too large record", lambda: good_batch(value=bytes(1_048_600)), ErrorCode.MESSAGE_TOO_LARGE),
    BadBatch("a record of tomorrow", batch_of_tomorrow, ErrorCode.INVALID_TIMESTAMP),
    BadBatch("partition -1", good_batch, UNKNOWN, partition=-1),
    BadBatch("partition 2^31-1", good_batch, UNKNOWN, partition=2**31 - 1),
    BadBatch("a topic that climbs", good_batch, UNKNOWN, topic="../../bad-input"),
    BadBatch("a topic of a dot", good_batch, UNKNOWN, topic="."),
    BadBatch("a topic without a name", good_batch, UNKNOWN, topic=""),
    BadBatch("a topic of 30,000 letters", good_batch, UNKNOWN, topic="x" * 30_000),
    BadBatch("acks 7", good_batch, ErrorCode.INVALID_REQUIRED_ACKS, acks=7),
    BadBatch("acks 7 for a partition that is not there", good_batch, UNKNOWN, partition=9, acks=7),
]

# Batches that Apache Kafka takes, so that we must, and that must not harm.
STRANGE_BATCHES = [
    BadBatch("a tail of a few bytes", lambda: good_batch() + b"tail", ErrorCode.NONE),
]

UNANSWERED_CORRUPT_BATCH = produce_request(corrupt_crc(), acks=0)


def negative_records_length() -> bytes:
    """A Produce request of version 3, which ends in the length of its records. Kafka never answers it."""
    whole = produce_request(b"", version=3)
    return whole[:-4] + struct.pack(">i", -5)


def records_length_beyond_the_frame() -> bytes:
    return produce_request(b"", version=3)[:-4] + struct.pack(">i", 2**31 - 1)
