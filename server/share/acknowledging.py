"""Acknowledgements of a request, partition by partition: ShareAcknowledge, and ShareFetch with some in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ottla.group_coordinator.share_partition.acknowledge import Acknowledgement
from ottla.group_coordinator.share_partition.runs import AcknowledgeType
from ottla.group_coordinator.share_state.shard import SharePartitionKey
from ottla.server.broker import Broker
from ottla.server.share.sessions import SessionKey, TopicPartition
from ottla.wire.errors import ErrorCode, KafkaError

_RENEW_SINCE = 2


class AcknowledgementBatch(Protocol):
    """The batches of both requests."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Outcome(NamedTuple):
    """What became of the acknowledgements of a partition."""

    code: int
    message: str | None


DONE = Outcome(ErrorCode.NONE, None)


class Acknowledging:
    """The acknowledgements of one member."""

    def __init__(self, broker: Broker, member: SessionKey, api_version: int, is_renew: bool) -> None:
        self._broker = broker
        self._group_id, self._member_id = member
        self._types = AcknowledgeType.RENEW if api_version >= _RENEW_SINCE else AcknowledgeType.REJECT
        self._is_renew = is_renew

    async def run(
        self, batches: Iterable[tuple[TopicPartition, Sequence[AcknowledgementBatch]]]
    ) -> dict[TopicPartition, Outcome]:
        """Take everything in; it is kept when this returns. Partitions of which nothing was said have no outcome."""
        outcomes = {where: self._acknowledge(where, each) for where, each in batches if each}
        await self._broker.share.states.flush_if_due()
        return outcomes

    def _acknowledge(self, where: TopicPartition, batches: Sequence[AcknowledgementBatch]) -> Outcome:
        topic_id, index = where
        if topic_id not in self._broker.image.topics_by_id:
            return Outcome(ErrorCode.UNKNOWN_TOPIC_ID, None)
        if not self._are_valid(batches):
            return Outcome(ErrorCode.INVALID_REQUEST, None)
        partitions = self._broker.share.partitions
        try:
            live = partitions.find_nowait(SharePartitionKey(self._group_id, topic_id, index))
            acknowledgements = [
                Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types)
                for each in batches
            ]
            partitions.acknowledge(live, self._member_id, acknowledgements)
        except KafkaError as error:
            return Outcome(error.code, error.detail)
        return DONE

    def _are_valid(self, batches: Sequence[AcknowledgementBatch]) -> bool:
        end = -1
        for batch in batches:
            types = batch.acknowledge_types
            count = batch.last_offset - batch.first_offset + 1
            if count < 1 or batch.first_offset < end or len(types) not in (1, count):
                return False
            if min(types) < AcknowledgeType.GAP or max(types) > self._types:
                return False
            if AcknowledgeType.RENEW in types and not self._is_renew:
                return False
            end = batch.last_offset
        return True
