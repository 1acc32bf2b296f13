"""ShareAcknowledge (79), versions 1-2: say what became of acquired records (KIP-932). 2 renews locks (KIP-1222)."""

from __future__ import annotations

from ottla.server.context import RequestContext
from ottla.server.groups.protocols import check_share_protocol
from ottla.server.registry import serves
from ottla.server.share.acknowledging import Acknowledging
from ottla.server.share.requests import check_member
from ottla.server.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.share_acknowledge import (
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

_RENEW_SINCE = 2


@serves(ShareAcknowledgeRequest)
async def handle_share_acknowledge(
    context: RequestContext, request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse:
    """Take in what the member says; the last request of a session releases the rest."""
    try:
        check_share_protocol(context.broker)
        member = check_member(request.group_id, request.member_id)
        _advance(context, member, request.share_session_epoch)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code)
    is_renew = context.api_version >= _RENEW_SINCE and request.is_renew_ack
    outcomes = await Acknowledging(context.broker, member, context.api_version, is_renew).run(
        ((topic.topic_id, partition.partition_index), partition.acknowledgement_batches)
        for topic in request.topics
        for partition in topic.partitions
    )
    if request.share_session_epoch == FINAL_EPOCH:
        context.broker.share.release_session(member)
        context.on_close.pop(member, None)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    for (topic_id, index), outcome in outcomes.items():
        topic = topics.setdefault(topic_id, ShareAcknowledgeTopicResponse(topic_id=topic_id))
        topic.partitions.append(
            PartitionData(partition_index=index, error_code=outcome.code, error_message=outcome.message)
        )
    values = context.broker.share.partitions.values_of(member[0])
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=values.record_lock_duration_ms, responses=list(topics.values())
    )


def _advance(context: RequestContext, member: SessionKey, epoch: int) -> None:
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session = context.broker.share.sessions.find(member)
    if epoch != FINAL_EPOCH:
        session.advance(epoch)
