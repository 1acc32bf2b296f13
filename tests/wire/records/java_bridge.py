"""Kafka's own MemoryRecords in a Java process of the test session: it builds batches, and reads ours."""

from __future__ import annotations

import io
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from compat_tests.kafka.jars import compile_java, java_executable, kafka_classpath
from ottla.wire.records import Record

_BATCH = struct.Struct(">qqqiqbbqhii??iqqi")


class JavaRefused(Exception):
    """Kafka's classes threw; the message is Java's."""


@dataclass
class JavaBatch:
    """A batch as Kafka's classes see it."""

    base_offset: int
    last_offset: int
    next_offset: int
    size_in_bytes: int
    max_timestamp: int
    timestamp_type: int
    codec: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    is_transactional: bool
    is_control: bool
    partition_leader_epoch: int
    delete_horizon_ms: int
    crc: int
    records_count: int
    records: list[Record] = field(default_factory=list)


class JavaRecords:
    """The running bridge. One request at a time."""

    def __init__(self, classes: Path) -> None:
        compile_java(Path(__file__).with_name("RecordBridge.java"), classes, kafka_classpath())
        self._process = subprocess.Popen(
            [
                java_executable(),
                "-Xshare:auto",
                "-Xmx256m",
                "-cp",
                f"{classes}:{kafka_classpath()}",
                "RecordBridge",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._stdin: IO[bytes] = self._process.stdin
        self._stdout: IO[bytes] = self._process.stdout

    def close(self) -> None:
        self._stdin.close()
        self._process.wait(timeout=30)
        self._stdout.close()

    def build(
        self,
        records: Sequence[Record],
        *,
        codec: int = 0,
        timestamp_type: int = 0,
        base_offset: int = 0,
        append_time_ms: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
        is_control: bool = False,
        partition_leader_epoch: int = -1,
        delete_horizon_ms: int = -1,
    ) -> bytes:
        body = bytearray(
            struct.pack(
                ">bbqqqhi",
                codec,
                timestamp_type,
                base_offset,
                append_time_ms,
                producer_id,
                producer_epoch,
                base_sequence,
            )
        )
        body += struct.pack(
            ">??iqi", is_transactional, is_control, partition_leader_epoch, delete_horizon_ms, len(records)
        )
        for record in records:
            body += struct.pack(">qq", record.offset, record.timestamp)
            body += _nullable(record.key) + _nullable(record.value) + struct.pack(">i", len(record.headers))
            for key, value in record.headers:
                body += _nullable(key.encode()) + _nullable(value)
        return self._ask(b"B", bytes(body))

    def read(self, data: bytes) -> list[JavaBatch]:
        answer = io.BytesIO(self._ask(b"R", data))
        batches = []
        for _ in range(_int32(answer)):
            batch = JavaBatch(*_BATCH.unpack(answer.read(_BATCH.size)))
            for _ in range(batch.records_count):
                offset, timestamp = struct.unpack(">qq", answer.read(16))
                key, value = _read_nullable(answer), _read_nullable(answer)
                headers = []
                for _ in range(_int32(answer)):
                    header_key = _read_nullable(answer)
                    assert header_key is not None
                    headers.append((header_key.decode(), _read_nullable(answer)))
                batch.records.append(Record(offset, timestamp, key, value, tuple(headers)))
            batches.append(batch)
        return batches

    def _ask(self, command: bytes, body: bytes) -> bytes:
        self._stdin.write(command + struct.pack(">i", len(body)) + body)
        self._stdin.flush()
        status, length = struct.unpack(">bi", self._stdout.read(5))
        answer = self._stdout.read(length)
        if status:
            raise JavaRefused(answer.decode())
        return answer


def _nullable(value: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if value is None else struct.pack(">i", len(value)) + value


def _int32(stream: io.BytesIO) -> int:
    return int.from_bytes(stream.read(4), "big", signed=True)


def _read_nullable(stream: io.BytesIO) -> bytes | None:
    length = _int32(stream)
    return None if length < 0 else stream.read(length)
