"""Batches and logs for the tests of this room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ottla.config.topic_config import TopicConfig
from ottla.log_store.log import Log
from ottla.log_store.reads import ReadResult
from ottla.wire.records.builder import build_batch
from ottla.wire.records.header import BatchView, iter_batches
from ottla.wire.records.records import Record, iter_records

TOPIC_ID = bytes(range(16))
NOW_MS = 1_700_000_000_000


def batch(
    *values: bytes, timestamps: list[int] | None = None, keys: list[bytes | None] | None = None, **header: Any
) -> memoryview:
    """One writable batch with a record for each value."""
    base_offset = header.get("base_offset", 0)
    records = [
        Record(
            base_offset + index,
            timestamps[index] if timestamps else NOW_MS,
            keys[index] if keys else None,
            value,
        )
        for index, value in enumerate(values)
    ]
    return memoryview(bytearray(build_batch(records, **header)))


def producer_batch(
    count: int = 1, *, sequence: int, producer_id: int = 7, epoch: int = 0, **header: Any
) -> memoryview:
    """A batch of an idempotent producer."""
    values = [f"{sequence + index}".encode() for index in range(count)]
    return batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **header)


def new_log(directory: Path, name: str = "orders-0", **config: Any) -> Log:
    return Log.create(directory / name, TOPIC_ID, TopicConfig(**config), now_ms=NOW_MS)


def reopen(log: Log, *, clean: bool, **options: Any) -> Log:
    """Open the directory of a log that was closed or given up."""
    options.setdefault("recovery_point", log.recovery_point)
    options.setdefault("log_start_offset", log.log_start_offset)
    options.setdefault("high_watermark", log.high_watermark)
    return Log.open(log.directory, log.config, now_ms=NOW_MS, clean=clean, **options)


def append(log: Log, records: memoryview, *, epoch: int = 0, now_ms: int = NOW_MS, **options: Any) -> int:
    """Append and let consumers see it; returns the base offset."""
    result = log.append(records, leader_epoch=epoch, now_ms=now_ms, **options)
    log.advance_high_watermark(log.log_end_offset)
    return result.base_offset


def views(result: ReadResult) -> list[BatchView]:
    """The whole batches of a read."""
    return [] if result.records is None else list(iter_batches(memoryview(result.records.read())))


def values_from(log: Log, offset: int) -> list[tuple[int, bytes | None]]:
    """(offset, value) of every record from `offset` on, read as a consumer does."""
    found: list[tuple[int, bytes | None]] = []
    while offset < log.log_end_offset:
        batches = views(log.read(offset, 1000, upto=log.log_end_offset, at_least_one=True))
        if not batches:
            break
        for view in batches:
            if not view.is_control:
                found += [(each.offset, each.value) for each in iter_records(view) if each.offset >= offset]
        offset = batches[-1].next_offset
    return found
