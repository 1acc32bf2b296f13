"""Metadata records in record batches, both ways: for the log and for snapshots."""

from collections.abc import Iterable, Iterator, Sequence

from ottla.metadata.control_records import KRaftVersionRecord, LeaderChangeMessage
from ottla.metadata.errors import MetadataError
from ottla.metadata.records import MetadataRecord
from ottla.metadata.records.frame import decode_record, encode_record
from ottla.metadata.voters_record import VotersRecord
from ottla.wire.dataclass import dataclass, field
from ottla.wire.errors import KafkaError, MalformedMessage
from ottla.wire.records.builder import build_batch
from ottla.wire.records.control import ControlType, control_type_of
from ottla.wire.records.header import BatchView
from ottla.wire.records.records import Record, iter_records
from ottla.wire.schema import Message, decode

MAX_RECORDS_PER_BATCH = 10_000
"""As many records as Kafka's controller lets one atomic operation write."""

_CONTROL_MESSAGES: dict[int, type[Message]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}


@dataclass(slots=True)
class DecodedBatch:
    """The contents of a batch: metadata records, or the control messages among those that matter here."""

    base_offset: int
    last_offset: int
    epoch: int
    records: list[MetadataRecord] = field(default_factory=list)
    control: list[Message] = field(default_factory=list)


def metadata_batch(
    records: Sequence[MetadataRecord], *, base_offset: int, epoch: int, now_ms: int, metadata_version: int
) -> bytes:
    """One batch, and so one atomic step, of metadata records."""
    return build_batch(
        [
            Record(base_offset + position, now_ms, None, encode_record(record, metadata_version))
            for position, record in enumerate(records)
        ],
        base_offset=base_offset,
        partition_leader_epoch=epoch,
    )


def decode_batch(view: BatchView) -> DecodedBatch:
    """Everything in a batch of the metadata log or of a snapshot."""
    batch = DecodedBatch(view.base_offset, view.last_offset, view.partition_leader_epoch)
    try:
        for entry in iter_records(view):
            if view.is_control:
                message = _control_message(entry)
                if message is not None:
                    batch.control.append(message)
            else:
                batch.records.append(decode_record(entry.value or b""))
    except (KafkaError, MalformedMessage) as error:
        raise MetadataError(
            f"The batch at offset {view.base_offset} of the metadata log cannot be read: {error}."
        ) from error
    return batch


def _control_message(entry: Record) -> Message | None:
    message_class = _CONTROL_MESSAGES.get(control_type_of(entry))
    if message_class is None or entry.value is None:
        return None
    version = int.from_bytes(entry.value[:2], "big", signed=True)
    return decode(message_class, version, entry.value)


def chunked(records: Iterable[MetadataRecord], size: int) -> Iterator[list[MetadataRecord]]:
    """The records in lists of at most `size`."""
    chunk: list[MetadataRecord] = []
    for record in records:
        chunk.append(record)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
