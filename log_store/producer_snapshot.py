"""`<offset>.snapshot`: what is known of every producer just before an offset (KIP-98).

    int16 version = 1,  uint32 crc (CRC-32C of all that follows),  int32 count,  then for each producer, 46 bytes:
    int64 producer_id       int16 producer_epoch        int32 last_sequence      int64 last_offset
    int32 offset_delta      int64 timestamp             int32 coordinator_epoch  int64 current_txn_first_offset

last_sequence, last_offset and offset_delta are those of the producer's last batch (-1, -1 and 0 if it has
none): of the window of five batches only the last one outlives a restart. current_txn_first_offset is -1
outside of a transaction. A snapshot is taken at each roll, named after the new segment, and at a clean stop,
named after the end of the log.
"""

from __future__ import annotations

import os
import struct

from ottla.log_store.files import FileSystem, read_small_file, write_fully
from ottla.log_store.producer_entry import BatchMetadata, ProducerEntry
from ottla.wire.crc import crc32c

VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


class CorruptSnapshot(Exception):
    """A snapshot file that cannot be trusted."""


def encode_snapshot(producers: list[ProducerEntry]) -> bytes:
    body = bytearray(_COUNT.pack(len(producers)))
    for entry in producers:
        last = entry.batches[-1] if entry.batches else None
        body += _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            last.last_sequence if last else -1,
            last.last_offset if last else -1,
            last.last_offset - last.first_offset if last else 0,
            entry.last_timestamp,
            entry.coordinator_epoch,
            -1 if entry.current_txn_first_offset is None else entry.current_txn_first_offset,
        )
    return _HEAD.pack(VERSION, crc32c(body)) + bytes(body)


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    try:
        version, crc = _HEAD.unpack_from(data)
        if version != VERSION:
            raise CorruptSnapshot(f"version {version}")
        if crc != crc32c(memoryview(data)[_HEAD.size :]):
            raise CorruptSnapshot("the checksum does not match")
        (count,) = _COUNT.unpack_from(data, _HEAD.size)
        start = _HEAD.size + _COUNT.size
        if count < 0 or len(data) < start + count * _ENTRY.size:
            raise CorruptSnapshot(f"{count} producers do not fit into {len(data)} bytes")
    except struct.error as error:
        raise CorruptSnapshot("the file is cut off") from error
    return [_entry_of(*_ENTRY.unpack_from(data, start + n * _ENTRY.size)) for n in range(count)]


def _entry_of(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    txn_first_offset: int,
) -> ProducerEntry:
    entry = ProducerEntry(producer_id)
    entry.producer_epoch = epoch
    entry.coordinator_epoch = coordinator_epoch
    entry.last_timestamp = timestamp
    entry.current_txn_first_offset = txn_first_offset if txn_first_offset >= 0 else None
    if last_offset >= 0:
        first_sequence = (last_sequence - offset_delta) & 0x7FFFFFFF
        first_offset = last_offset - offset_delta
        entry.batches = [BatchMetadata(first_sequence, last_sequence, first_offset, last_offset, timestamp)]
        entry.is_partial = True
    return entry


def write_snapshot(fs: FileSystem, path: str, producers: list[ProducerEntry], *, sync: bool) -> None:
    data = encode_snapshot(producers)
    fd = fs.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write_fully(fs, fd, data, 0)
        if sync:
            fs.fsync(fd)
    finally:
        fs.close(fd)


def read_snapshot(path: str) -> list[ProducerEntry]:
    return decode_snapshot(read_small_file(path))
