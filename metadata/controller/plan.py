"""What a planning function gives back: the records to commit and the answer to give when they are committed.

Planning is pure. It reads the image, never changes it, and decides everything; committing a plan cannot be
refused any more, except by the disk.
"""

from typing import Generic, TypeVar

from ottla.metadata.records import MetadataRecord
from ottla.wire.dataclass import dataclass
from ottla.wire.errors import ErrorCode, KafkaError

Response = TypeVar("Response")

MAX_RECORDS_PER_CHANGE = 10_000
"""Kafka's bound for one atomic change of the metadata."""


@dataclass(frozen=True, slots=True)
class Plan(Generic[Response]):
    """Records, which may be none, and the results that are true once they are committed."""

    records: list[MetadataRecord]
    results: Response


def check_size(records: list[MetadataRecord]) -> None:
    """Refuse a change that one atomic batch could not hold."""
    if len(records) > MAX_RECORDS_PER_CHANGE:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
