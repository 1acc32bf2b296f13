"""Ids as Kafka shows them, and slices of files."""

import os
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.wire.chunks import FileSlice, chunks_length, join_chunks
from ottla.wire.errors import ErrorCode, KafkaError, MalformedMessage
from ottla.wire.uuids import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    ZERO_UUID,
    format_uuid,
    parse_uuid,
)


@given(st.binary(min_size=16, max_size=16))
def test_uuid_round_trip(value: bytes) -> None:
    """22 characters of the URL-safe alphabet, and back."""
    text = format_uuid(value)
    assert len(text) == 22
    assert not set(text) & set("+/=")
    assert parse_uuid(text) == value


def test_reserved_ids() -> None:
    """The ids that Kafka's `Uuid` and `DirectoryId` reserve, as they print."""
    assert format_uuid(ZERO_UUID) == format_uuid(MIGRATING_DIRECTORY) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert format_uuid(UNASSIGNED_DIRECTORY) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert format_uuid(LOST_DIRECTORY) == "AAAAAAAAAAAAAAAAAAAAAg"
    assert format_uuid(uuid.UUID("fbfbfbfb-fbfb-fbfb-fbfb-fbfbfbfbfbff").bytes) == "-_v7-_v7-_v7-_v7-_v7_w"


@pytest.mark.parametrize("text", ["", "abc", "AAAAAAAAAAAAAAAAAAAAAAAA", "é" * 22, "AAAAAAAAAAAAAAAAAAAAA"])
def test_texts_that_are_no_id(text: str) -> None:
    """Too short, too long, not base64."""
    with pytest.raises(ValueError, match="id"):
        parse_uuid(text)


def test_id_of_the_wrong_size() -> None:
    """Only 16 bytes can be shown."""
    with pytest.raises(ValueError, match="16 bytes"):
        format_uuid(b"short")


def test_file_slice_outlives_its_file_name(tmp_path: Path) -> None:
    """A slice of a deleted file can still be read."""
    path = tmp_path / "segment"
    path.write_bytes(b"0123456789")
    with path.open("rb") as file:
        piece = FileSlice(file, 3, 4)
        os.unlink(path)
        assert (len(piece), piece.read()) == (4, b"3456")
        assert piece.fileno() == file.fileno()
        assert join_chunks([b"a", piece, memoryview(b"z")]) == b"a3456z"
        assert chunks_length([b"a", piece, memoryview(b"z")]) == 6


def test_file_slice_of_a_file_too_short(tmp_path: Path) -> None:
    """Fewer bytes than promised is an error and not a short answer."""
    path = tmp_path / "segment"
    path.write_bytes(b"0123456789")
    with path.open("rb") as file, pytest.raises(OSError, match="ends 5 bytes early"):
        FileSlice(file, 8, 7).read()


def test_errors_say_what_they_mean() -> None:
    """The code's sentence, unless the error has one of its own."""
    assert str(KafkaError(ErrorCode.INVALID_CONFIG)) == "INVALID_CONFIG: The configuration is not valid."
    assert KafkaError(ErrorCode.INVALID_CONFIG, "no such config").message == "no such config"
    assert str(MalformedMessage("bad").within("[2]").within("topics")) == "topics[2]: bad"
    assert str(MalformedMessage("bad", "name").within("[2]").within("topics")) == "topics[2].name: bad"
