"""What the cleaner is asked to do and what it answers, as values that travel to another process as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

UNLIMITED: Final = float("inf")

ProducerTail = tuple[int, int]  # last offset with data (-1 if there is none), producer epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningJob:
    """One round over one log. `segments` are the base offsets of all segments below the first uncleanable offset;
    `producers` are the producers known to the log with the end of what they wrote."""

    directory: str
    segments: list[int]
    first_dirty_offset: int
    first_uncleanable_offset: int
    producers: dict[int, ProducerTail]
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    key_map_bytes: int
    load_factor: float = 0.9
    buffer_bytes: int = 1 << 18
    max_bytes_per_second: float = UNLIMITED


@dataclass(frozen=True, slots=True)
class CleanedGroup:
    """Neighbouring segments whose replacement lies ready as `.cleaned` files of the first one's name."""

    replaced: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningResult:
    """The end of a round: everything below `end_offset` is clean now."""

    end_offset: int
    indexed_bytes: int
    read_bytes: int
    written_bytes: int
    keys: int


@dataclass(frozen=True, slots=True)
class CleaningFailed:
    """Why a round was given up: `errno` is what the disk said if it refused, else the log is damaged."""

    reason: str
    errno: int | None = None


Answer = CleanedGroup | CleaningResult | CleaningFailed

_ANSWERS: Final = {kind.__name__: kind for kind in (CleanedGroup, CleaningResult, CleaningFailed)}


def encode_job(job: CleaningJob) -> bytes:
    """One line."""
    return json.dumps(asdict(job)).encode() + b"\n"


def decode_job(line: bytes) -> CleaningJob:
    fields = json.loads(line)
    fields["producers"] = {int(key): tuple(tail) for key, tail in fields["producers"].items()}
    return CleaningJob(**fields)


def encode_answer(answer: Answer) -> bytes:
    """One line."""
    return json.dumps([type(answer).__name__, asdict(answer)]).encode() + b"\n"


def decode_answer(line: bytes) -> Answer:
    kind, fields = json.loads(line)
    answer: Answer = _ANSWERS[kind](**fields)
    return answer
