"""DeleteTopics: by name or by id, each topic once.

Answers come in the order errors in the request, ids, names. (Kafka shuffles them, so that their order tells
nothing to clients that may not see a topic.)
"""

from collections import Counter

from ottla.config.broker_config import BrokerConfig
from ottla.metadata.controller.plan import Plan, check_size
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import MetadataRecord, RemoveTopicRecord
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.uuids import ZERO_UUID, Uuid


def plan_delete_topics(
    image: MetadataImage, request: DeleteTopicsRequest, *, api_version: int, config: BrokerConfig
) -> Plan[DeleteTopicsResponse]:
    """The plan for a DeleteTopics request; KafkaError when deletion is switched off."""
    if not config.get_bool("delete.topic.enable"):
        if api_version < 3:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "This version does not support topic deletion.")
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
    results: list[DeletableTopicResult] = []
    names = Counter(request.topic_names)
    ids: Counter[Uuid] = Counter()
    for topic in request.topics:
        if topic.name is not None and topic.topic_id != ZERO_UUID:
            results.append(
                _refused(topic.name, topic.topic_id, "You may not specify both topic name and topic id.")
            )
        elif topic.name is not None:
            names[topic.name] += 1
        elif topic.topic_id != ZERO_UUID:
            ids[topic.topic_id] += 1
        else:
            results.append(_refused(None, ZERO_UUID, "Neither topic name nor id were specified."))
    results += [
        _refused(name, ZERO_UUID, "Duplicate topic name.") for name, count in names.items() if count > 1
    ]
    results += [
        _refused(None, topic_id, "Duplicate topic id.") for topic_id, count in ids.items() if count > 1
    ]

    doomed: dict[Uuid, str] = {}
    for topic_id, count in ids.items():
        found = image.topics_by_id.get(topic_id)
        if count == 1 and found is None:
            results.append(_result(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
        elif count == 1 and found is not None:
            doomed[topic_id] = found.name
    for name, count in names.items():
        found = image.topics_by_name.get(name)
        if count == 1 and found is None:
            results.append(_result(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif count == 1 and found is not None:
            if found.topic_id in ids:
                doomed.pop(found.topic_id, None)
                results.append(
                    _refused(
                        name,
                        found.topic_id,
                        "The provided topic name maps to an ID that was already supplied.",
                    )
                )
            else:
                doomed[found.topic_id] = name
    records: list[MetadataRecord] = [RemoveTopicRecord(topic_id=topic_id) for topic_id in doomed]
    check_size(records)
    results += [DeletableTopicResult(name=name, topic_id=topic_id) for topic_id, name in doomed.items()]
    return Plan(records, DeleteTopicsResponse(responses=results))


def _refused(name: str | None, topic_id: Uuid, detail: str) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=ErrorCode.INVALID_REQUEST, error_message=detail
    )


def _result(name: str | None, topic_id: Uuid, code: ErrorCode) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=code.message)
