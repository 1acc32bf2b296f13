"""What stock clients and a real Kafka really send: read, and written again to the same bytes."""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.wire.headers import (
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from ottla.wire.messages.fetch import FetchResponse
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.schema import decode, encode
from tests.wire.catalog import all_messages

MESSAGES = {(cls.API_KEY, cls.KIND): cls for cls in all_messages()}
ROWS = json.loads((Path(__file__).parents[1] / "golden" / "frames.json").read_text())
FRAMES = [row for row in ROWS if (row["api_key"], "request") in MESSAGES]


def name_of(row: dict[str, Any]) -> str:
    cls = MESSAGES[row["api_key"], row["direction"]]
    return f"{row['client'].split()[0]}-{cls.__name__}-v{row['version']}"


def frames(direction: str) -> Any:
    rows = [row for row in FRAMES if row["direction"] == direction]
    return pytest.mark.parametrize("row", rows, ids=name_of)


@frames("request")
def test_requests_of_clients(row: dict[str, Any]) -> None:
    """Header and body are read to the end and written again just so."""
    frame = bytes.fromhex(row["frame"])
    header, position = decode_request_header(memoryview(frame))
    assert (header.api_key, header.api_version) == (row["api_key"], row["version"])
    body = decode(MESSAGES[header.api_key, "request"], header.api_version, memoryview(frame)[position:])
    assert encode_request_header(header) + encode(body, header.api_version) == frame


@frames("response")
def test_responses_of_kafka(row: dict[str, Any]) -> None:
    """Header and body are read to the end and written again just so."""
    frame = bytes.fromhex(row["frame"])
    key, version = row["api_key"], row["version"]
    correlation_id, position = decode_response_header(key, version, memoryview(frame))
    body = decode(MESSAGES[key, "response"], version, memoryview(frame)[position:])
    assert encode_response_header(key, version, correlation_id) + encode(body, version) == frame


def test_what_was_said() -> None:
    """The record that each client produced is in its Produce request, and in the Fetch response it got."""
    for row in FRAMES:
        body = bytes.fromhex(row["frame"])
        cls = MESSAGES[row["api_key"], row["direction"]]
        if cls is ProduceRequest:
            _, position = decode_request_header(memoryview(body))
            request = decode(ProduceRequest, row["version"], body[position:])
            records = request.topic_data[0].partition_data[0].records
            assert request.acks == -1 or "aiokafka" in row["client"]
        elif cls is FetchResponse:
            _, position = decode_response_header(row["api_key"], row["version"], memoryview(body))
            response = decode(FetchResponse, row["version"], body[position:])
            assert response.responses[0].partitions[0].high_watermark == 1
            records = response.responses[0].partitions[0].records  # type: ignore[assignment]
        else:
            continue
        assert b"key" in bytes(records)  # type: ignore[arg-type]
        assert b"value" in bytes(records)  # type: ignore[arg-type]
