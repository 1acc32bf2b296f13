"""DeleteTopics: by name and id, duplicates, unknown ones; codes and messages as a real Kafka 4.3.0 gave them."""

import pytest

from ottla.metadata.controller.delete_topics import plan_delete_topics
from ottla.metadata.records import RemoveTopicRecord
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.wire.uuids import ZERO_UUID
from tests.metadata.images import broker_config, running_image, topic_records

A_ID, B_ID = b"a...............", b"b..............."
UNKNOWN_ID = b"u" * 16

Answer = tuple[str | None, bytes, int, str | None]


def answers(response: DeleteTopicsResponse) -> list[Answer]:
    return [(r.name, r.topic_id, r.error_code, r.error_message) for r in response.responses]


def test_by_name_and_by_id() -> None:
    """Both answers tell name and id."""
    image = running_image(*topic_records("a"), *topic_records("b"))
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="a"), DeleteTopicState(topic_id=B_ID)])
    made = plan_delete_topics(image, request, api_version=6, config=broker_config())
    assert sorted(answers(made.results)) == [("a", A_ID, 0, None), ("b", B_ID, 0, None)]
    assert {record.topic_id for record in made.records if isinstance(record, RemoveTopicRecord)} == {
        A_ID,
        B_ID,
    }
    image.apply_all(made.records, 1)
    assert image.topic_names() == []


def test_by_the_names_of_old_versions() -> None:
    """Versions up to 5 list names only."""
    image = running_image(*topic_records("a"))
    request = DeleteTopicsRequest(topic_names=["a", "nope"])
    made = plan_delete_topics(image, request, api_version=3, config=broker_config())
    assert {(name, code) for name, _, code, _ in answers(made.results)} == {
        ("a", 0),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    }


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (
            [("nope", ZERO_UUID)],
            [
                (
                    "nope",
                    ZERO_UUID,
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message,
                )
            ],
        ),
        (
            [(None, UNKNOWN_ID)],
            [(None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message)],
        ),
        (
            [(None, ZERO_UUID)],
            [(None, ZERO_UUID, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")],
        ),
        (
            [("a", A_ID)],
            [("a", A_ID, ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")],
        ),
        (
            [("a", ZERO_UUID)] * 3,
            [("a", ZERO_UUID, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")],
        ),
        (
            [(None, A_ID)] * 2,
            [(None, A_ID, ErrorCode.INVALID_REQUEST, "Duplicate topic id.")],
        ),
        (
            [("a", ZERO_UUID), (None, A_ID)],
            [
                (
                    "a",
                    A_ID,
                    ErrorCode.INVALID_REQUEST,
                    "The provided topic name maps to an ID that was already supplied.",
                )
            ],
        ),
    ],
)
def test_refused_as_kafka_refuses(states: list[tuple[str | None, bytes]], expected: list[Answer]) -> None:
    """Nothing is deleted, and each mistake is answered once."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=n, topic_id=i) for n, i in states])
    made = plan_delete_topics(
        running_image(*topic_records("a")), request, api_version=6, config=broker_config()
    )
    assert answers(made.results) == expected
    assert made.records == []


@pytest.mark.parametrize(("version", "code"), [(2, "INVALID_REQUEST"), (6, "TOPIC_DELETION_DISABLED")])
def test_deletion_can_be_switched_off(version: int, code: str) -> None:
    """delete.topic.enable=false fails the request as a whole."""
    with pytest.raises(KafkaError) as caught:
        plan_delete_topics(
            running_image(),
            DeleteTopicsRequest(),
            api_version=version,
            config=broker_config(delete_topic_enable="false"),
        )
    assert caught.value.code == ErrorCode[code]
