"""ShareFetch (78), versions 1-2: acquire records as a member of a share group, and acknowledge earlier ones (KIP-932).

2 may ask for no more records than its limit (KIP-1206), and renews locks; then no records are fetched (KIP-1222).

A session remembers the partitions. Its first request gets an answer for all of them, later ones for those with records,
errors or acknowledgements, and for those that were named anew.
"""

from __future__ import annotations

import trio

from ottla.server.context import RequestContext
from ottla.server.groups.protocols import check_share_protocol
from ottla.server.registry import serves
from ottla.server.share.acknowledging import Acknowledging, Outcome
from ottla.server.share.fetching import ShareFetching
from ottla.server.share.requests import check_member
from ottla.server.share.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    ShareSession,
    TopicPartition,
)
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.share_fetch import (
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

_RENEW_SINCE = 2


@serves(ShareFetchRequest)
async def handle_share_fetch(context: RequestContext, request: ShareFetchRequest) -> ShareFetchResponse:
    """Acknowledge, then fetch."""
    try:
        check_share_protocol(context.broker)
        member = check_member(request.group_id, request.member_id)
        is_renew = context.api_version >= _RENEW_SINCE and request.is_renew_ack
        if is_renew:
            _check_renew(request)
        session = _session(context, member, request)
    except KafkaError as error:
        if error.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            await trio.sleep(request.max_wait_ms / 1000)
        return ShareFetchResponse(error_code=error.code)
    outcomes: dict[TopicPartition, Outcome] = {}
    if _has_acknowledgements(request):
        acknowledging = Acknowledging(context.broker, member, context.api_version, is_renew)
        outcomes = await acknowledging.run(
            ((topic.topic_id, partition.partition_index), partition.acknowledgement_batches)
            for topic in request.topics
            for partition in topic.partitions
        )
    rows: dict[TopicPartition, PartitionData] = {}
    if session is not None and not is_renew:
        wanted = list(session.partitions)
        turned = request.share_session_epoch % len(wanted) if wanted else 0
        rows = await ShareFetching(context.broker, member, request).run([*wanted[turned:], *wanted[:turned]])
        if request.share_session_epoch != INITIAL_EPOCH:
            rows = _news(session, rows)
    if request.share_session_epoch == FINAL_EPOCH:
        context.broker.share.release_session(member)
        context.on_close.pop(member, None)
    return _response(context, member, rows, outcomes)


def _check_renew(request: ShareFetchRequest) -> None:
    wrong = [
        f"{name} must be set to 0, "
        for name, value in (
            ("maxBytes", request.max_bytes),
            ("minBytes", request.min_bytes),
            ("maxRecords", request.max_records),
            ("maxWaitMs", request.max_wait_ms),
        )
        if value
    ]
    if wrong:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "".join(wrong) + "if isRenewAck is true.")


def _has_acknowledgements(request: ShareFetchRequest) -> bool:
    return any(
        partition.acknowledgement_batches for topic in request.topics for partition in topic.partitions
    )


def _session(context: RequestContext, member: SessionKey, request: ShareFetchRequest) -> ShareSession | None:
    """The session after this request; None for its last one. Raises KafkaError."""
    share = context.broker.share
    named = [
        (topic.topic_id, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if request.share_session_epoch == FINAL_EPOCH:
        share.sessions.find(member)
        return None
    if request.share_session_epoch == INITIAL_EPOCH:
        if _has_acknowledgements(request):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        session = share.sessions.open(member, named)
        context.on_close[member] = lambda: share.release_session(member)
        return session
    forgotten = [
        (topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
    ]
    return share.sessions.update(member, request.share_session_epoch, named, forgotten)


def _news(
    session: ShareSession, rows: dict[TopicPartition, PartitionData]
) -> dict[TopicPartition, PartitionData]:
    """What a client that knows the rest must be told. After an error it is told when that has gone away."""
    news = {
        where: row
        for where, row in rows.items()
        if row.acquired_records or row.error_code or where in session.must_answer
    }
    session.must_answer = {where for where, row in news.items() if row.error_code}
    return news


def _response(
    context: RequestContext,
    member: SessionKey,
    rows: dict[TopicPartition, PartitionData],
    outcomes: dict[TopicPartition, Outcome],
) -> ShareFetchResponse:
    for where, outcome in outcomes.items():
        row = rows.setdefault(where, PartitionData(partition_index=where[1], records=b""))
        row.acknowledge_error_code, row.acknowledge_error_message = outcome
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    for (topic_id, _), row in rows.items():
        topic = topics.setdefault(topic_id, ShareFetchableTopicResponse(topic_id=topic_id))
        topic.partitions.append(row)
    values = context.broker.share.partitions.values_of(member[0])
    return ShareFetchResponse(
        acquisition_lock_timeout_ms=values.record_lock_duration_ms, responses=list(topics.values())
    )
