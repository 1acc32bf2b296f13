"""The header of a record batch, format v2 (magic 2, KIP-98), read and patched where it lies.

    offset  size  field                       offset  size  field
         0     8  base_offset                     27     8  base_timestamp
         8     4  batch_length (what follows)     35     8  max_timestamp
        12     4  partition_leader_epoch          43     8  producer_id
        16     1  magic                           51     2  producer_epoch
        17     4  crc (CRC-32C of 21..end)        53     4  base_sequence
        21     2  attributes                      57     4  records_count
        23     4  last_offset_delta               61        records, compressed as one block

    attributes: bits 0-2 codec, 3 timestamp type (1 = LogAppendTime), 4 transactional, 5 control,
    6 base_timestamp holds a delete horizon (KIP-534).

base_offset and partition_leader_epoch lie outside the CRC, so a broker assigns offsets without touching
the checksum. A view copies nothing: it keeps the buffer it was made on, and its fields are those of the
moment it was made.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import ClassVar

from ottla.wire.crc import crc32c
from ottla.wire.errors import ErrorCode, KafkaError

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = 61
LOG_OVERHEAD = 12  # base_offset and batch_length, which batch_length does not count
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21  # the CRC covers everything from here
MAX_TIMESTAMP_POSITION = 35
COUNT_POSITION = 57  # of records_count
SMALLEST_BATCH_LENGTH = HEADER_SIZE - LOG_OVERHEAD
MAGIC_POSITION = 16
MAGIC_V2 = 2

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40
_KNOWN_ATTRIBUTES = 0x7F

CREATE_TIME = 0
LOG_APPEND_TIME = 1

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1

_SMALLEST_LEGACY_LENGTH = 14  # crc, magic, attributes and two lengths of a magic 0 message
_unpack_header = HEADER.unpack_from
_unpack_length = struct.Struct(">i").unpack_from
_pack_offset = struct.Struct(">q").pack_into
_pack_epoch = struct.Struct(">i").pack_into
_pack_crc = struct.Struct(">I").pack_into
_unpack_crc = struct.Struct(">I").unpack_from
_pack_attributes = struct.Struct(">h").pack_into
_unpack_producer = struct.Struct(">qh").unpack_from
_unpack_attributes = struct.Struct(">h").unpack_from
_crc_of = crc32c


class CorruptBatch(KafkaError):
    """Bytes that cannot be a record batch, or whose checksum is wrong."""

    def __init__(self, detail: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, detail)


class BatchView:
    """The fields of one batch that begins at `pos` of `buf`; the caller has checked that it fits there."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "batch_length",
        "buf",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "pos",
        "producer_epoch",
        "producer_id",
        "records_count",
    )

    SIZE: ClassVar[int] = HEADER_SIZE

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    def __init__(self, buf: memoryview, pos: int = 0) -> None:
        self.buf = buf
        self.pos = pos
        (
            self.base_offset,
            self.batch_length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.records_count,
        ) = _unpack_header(buf, pos)

    @property
    def size_in_bytes(self) -> int:
        return self.batch_length + LOG_OVERHEAD

    @property
    def end(self) -> int:
        """The position in the buffer just after this batch."""
        return self.pos + self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences go round from 2^31-1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def codec(self) -> int:
        """The number in the codec bits: 0 to 4 are codecs, 5 to 7 mean nothing."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        return LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_BIT else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def data(self) -> memoryview:
        """The whole batch, header included."""
        return self.buf[self.pos : self.pos + self.batch_length + LOG_OVERHEAD]

    @property
    def payload(self) -> memoryview:
        """The records as they are stored: still compressed if the batch is."""
        return self.buf[self.pos + HEADER_SIZE : self.pos + self.batch_length + LOG_OVERHEAD]

    def compute_crc(self) -> int:
        pos = self.pos
        return _crc_of(self.buf[pos + ATTRIBUTES_POSITION : pos + self.batch_length + LOG_OVERHEAD])

    def crc_matches(self) -> bool:
        pos = self.pos
        end = pos + self.batch_length + LOG_OVERHEAD
        return self.crc == _crc_of(self.buf[pos + ATTRIBUTES_POSITION : end])

    def __repr__(self) -> str:
        return (
            f"BatchView(base_offset={self.base_offset}, last_offset={self.last_offset}, "
            f"records_count={self.records_count}, size_in_bytes={self.size_in_bytes}, codec={self.codec}, "
            f"producer_id={self.producer_id}, producer_epoch={self.producer_epoch}, "
            f"base_sequence={self.base_sequence}, leader_epoch={self.partition_leader_epoch})"
        )


def unpack_producer(buf: memoryview | bytes | bytearray) -> tuple[int, int]:
    """Producer id and epoch of the batch at the beginning of a buffer, which has a whole header."""
    return _unpack_producer(buf, 43)


def batch_size_at(buf: memoryview, pos: int, end: int) -> int:
    """The size in bytes that the batch at `pos` claims, or 0 when even its length and magic are cut off.

    Raises CorruptBatch for a length or magic that no batch has, and INVALID_RECORD for the message
    formats before v2, which Kafka 4 takes from nobody.
    """
    left = end - pos
    if left < LOG_OVERHEAD:
        return 0
    length: int = _unpack_length(buf, pos + 8)[0]
    if length < _SMALLEST_LEGACY_LENGTH:
        raise CorruptBatch(f"batch length {length} is below the smallest possible")
    if left <= MAGIC_POSITION:
        return 0
    magic = buf[pos + MAGIC_POSITION]
    if magic != MAGIC_V2:
        if magic > MAGIC_V2:
            raise CorruptBatch(f"unknown magic {magic}")
        raise KafkaError(ErrorCode.INVALID_RECORD, f"only batches of magic 2 are accepted, not {magic}")
    if length < SMALLEST_BATCH_LENGTH:
        raise CorruptBatch(f"batch length {length} is below the {SMALLEST_BATCH_LENGTH} of an empty batch")
    return length + LOG_OVERHEAD


def iter_batches(buf: memoryview, pos: int = 0, end: int | None = None) -> Iterator[BatchView]:
    """Whole batches one after the other; a batch cut off at the end is left out, as a fetch may cut it."""
    stop = len(buf) if end is None else end
    while True:
        size = batch_size_at(buf, pos, stop)
        if size == 0 or size > stop - pos:
            return
        yield BatchView(buf, pos)
        pos += size


def split_batches(buf: memoryview) -> list[BatchView]:
    """All batches of a buffer that must hold whole ones and nothing else; CorruptBatch if it does not."""
    batches = []
    pos = 0
    end = len(buf)
    while pos < end:
        size = batch_size_at(buf, pos, end)
        if size == 0 or size > end - pos:
            needed = size or HEADER_SIZE
            raise CorruptBatch(f"the batch at byte {pos} needs {needed} bytes, {end - pos} are there")
        batches.append(BatchView(buf, pos))
        pos += size
    return batches


def crc_matches(batch: memoryview) -> bool:
    """Whether the checksum of a whole batch is right."""
    return bool(_unpack_crc(batch, CRC_POSITION)[0] == _crc_of(batch[ATTRIBUTES_POSITION:]))


def patch(buf: memoryview | bytearray, pos: int, base_offset: int, leader_epoch: int) -> None:
    """Assign offsets to the batch at `pos`, in place; its checksum stays right."""
    _pack_offset(buf, pos, base_offset)
    _pack_epoch(buf, pos + 12, leader_epoch)


def patch_timestamp(buf: memoryview | bytearray, pos: int, timestamp_type: int, max_timestamp: int) -> None:
    """Set timestamp type and greatest timestamp of the batch at `pos` in place, and its new checksum. Attributes
    that mean nothing are cleared, as Kafka does."""
    view = memoryview(buf)
    attributes = _unpack_attributes(view, pos + ATTRIBUTES_POSITION)[0] & _KNOWN_ATTRIBUTES
    if timestamp_type == LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_BIT
    else:
        attributes &= ~TIMESTAMP_TYPE_BIT
    end = pos + LOG_OVERHEAD + _unpack_length(view, pos + 8)[0]
    _pack_attributes(view, pos + ATTRIBUTES_POSITION, attributes)
    _pack_offset(view, pos + 35, max_timestamp)
    _pack_crc(view, pos + CRC_POSITION, _crc_of(view[pos + ATTRIBUTES_POSITION : end]))


def patch_append_time(buf: memoryview | bytearray, pos: int, append_time_ms: int) -> None:
    """Stamp the batch at `pos` with the broker's clock, as message.timestamp.type=LogAppendTime asks."""
    patch_timestamp(buf, pos, LOG_APPEND_TIME, append_time_ms)
