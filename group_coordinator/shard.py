"""The groups and offsets of one partition of `__consumer_offsets`.

`handle` turns an event into effects; `apply` is the only way in which what the log holds changes here, at
start-up and in live work alike. Groups of all kinds live side by side under their ids, and each kind has its own
room; this file knows which event is whose.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Any, Final

from ottla.group_coordinator import admin, offset_requests, txn_offset_requests
from ottla.group_coordinator.classic.conversion import (
    REBALANCE_TIMER,
    ConvertibleClassicGroups,
    rebalance_after_downgrade,
)
from ottla.group_coordinator.classic.family import (
    ClassicRequest,
    classic_timer_fired,
    handle_classic,
    offsets_committed,
    resume,
    retire,
)
from ottla.group_coordinator.classic.group import ClassicGroup
from ottla.group_coordinator.classic.record import apply_group_record
from ottla.group_coordinator.consumer import coordinator as consumer_groups
from ottla.group_coordinator.consumer.context import TIMER_KINDS as CONSUMER_TIMERS
from ottla.group_coordinator.consumer.context import Context as ConsumerContext
from ottla.group_coordinator.consumer.describe import describe_group, unknown_group
from ottla.group_coordinator.consumer.replay import CONSUMER_RECORDS, apply_consumer_record
from ottla.group_coordinator.consumer.settings import ConsumerGroupSettings
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.effects import (
    Append,
    Effect,
    Event,
    GroupRequest,
    OffsetsGone,
    ShareStateInitialized,
    ShareStateRemoved,
    TimerFired,
    TimerKey,
)
from ottla.group_coordinator.group import Group
from ottla.group_coordinator.offsets import NO_PRODUCER_ID, Offsets
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.records.classic_group import GroupMetadataKey, GroupMetadataValue
from ottla.group_coordinator.records.offsets import OffsetCommitKey, OffsetCommitValue
from ottla.group_coordinator.settings import GroupSettings
from ottla.group_coordinator.share import coordinator as share_groups
from ottla.group_coordinator.share import heartbeat as share_heartbeat
from ottla.group_coordinator.share.replay import SHARE_RECORDS, apply_share_record
from ottla.group_coordinator.share.settings import ShareGroupSettings
from ottla.group_coordinator.share.state import ShareGroup
from ottla.group_coordinator.topics import Topics
from ottla.group_coordinator.turn import Turn
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ottla.wire.messages.describe_groups import DescribedGroup
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.list_groups import ListedGroup
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from ottla.wire.messages.share_group_describe import DescribedGroup as DescribedShareGroup
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.messages.sync_group import SyncGroupRequest
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from ottla.wire.schema import Message

EXPIRY_TIMER = TimerKey("offsets.expiry", "")
_NOT_FOUND_SINCE = 9


class GroupShard:
    """`settings` are asked for each event, so that changed ones are in force at once; `new_id` makes the random part
    of member ids."""

    def __init__(
        self,
        settings: Callable[[], GroupSettings],
        consumer_settings: ConsumerGroupSettings,
        share_settings: ShareGroupSettings,
        topics: Topics,
        new_id: Callable[[], str],
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self._settings = settings
        self._topics = topics
        self._new_id = new_id
        self._consumer = ConsumerContext(self.groups, consumer_settings, topics, new_id)
        self._share = share_heartbeat.ShareContext(self.groups, share_settings, topics, new_id)

    # What the log holds ------------------------------------------------------------------------------------

    def apply(
        self,
        record: CoordinatorRecord,
        now_ms: int,
        producer_id: int = NO_PRODUCER_ID,
        record_offset: int = -1,
    ) -> None:
        """Take in a record of the log; one with a producer id belongs to a transaction."""
        key, value = record
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            if producer_id != NO_PRODUCER_ID and value is not None:
                self.offsets.pending.add(producer_id, key, value, record_offset)
            else:
                self.offsets.apply(key, value)
            if value is not None and key.group not in self.groups:
                # Offsets without a group are those of a consumer that assigns its partitions itself.
                self.groups[key.group] = ClassicGroup(key.group, state_timestamp_ms=now_ms)
        elif isinstance(key, GroupMetadataKey):
            if isinstance(value, GroupMetadataValue):
                self.groups[key.group] = apply_group_record(self.groups, key, value)
            elif isinstance(self.groups.get(key.group), ClassicGroup):
                del self.groups[key.group]
        elif type(key) in CONSUMER_RECORDS:
            apply_consumer_record(self.groups, record)
        elif type(key) in SHARE_RECORDS:
            apply_share_record(self.groups, record, now_ms)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Take in a marker of the log."""
        self.offsets.end_transaction(producer_id, committed=committed)

    def loaded(self, now_ms: int) -> list[Effect]:
        """The whole log has been applied: sessions run from now on."""
        turn = self._turn(now_ms)
        turn.append(self.offsets.delete_orphans(self._topics))
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                resume(turn, group)
        turn.effects += consumer_groups.start_timers(self._consumer, now_ms)
        share_groups.start_timers(self._share, turn)
        turn.set_timer(EXPIRY_TIMER, turn.settings.offsets_retention_check_interval_ms)
        return turn.effects

    # Events ------------------------------------------------------------------------------------------------

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """What is to be done about the event."""
        turn = self._turn(now_ms)
        if isinstance(event, GroupRequest):
            self._handle_request(turn, event)
        elif isinstance(event, TimerFired):
            self._timer_fired(turn, event.key)
        elif isinstance(event, ShareStateInitialized):
            share_groups.state_initialized(self._share, turn, event)
        elif isinstance(event, ShareStateRemoved):
            share_groups.state_removed(self._share, turn, event)
        elif isinstance(event, OffsetsGone):
            turn.append(list(islice(self.offsets.delete_topics(event.deleted), event.most)))
        else:
            turn.append(list(self.offsets.delete_topics(event.deleted)))
            consumer_groups.topics_changed(self._consumer, event)
            share_groups.topics_changed(self._share, turn, event)
        return turn.effects

    def _turn(self, now_ms: int) -> Turn:
        return Turn(now_ms, self._settings(), self._new_id)

    def _handle_request(self, turn: Turn, event: GroupRequest) -> None:
        handle = _REQUESTS.get(type(event.message))
        if handle is None:
            raise TypeError(f"{type(event.message).__name__} is not a request to a group")
        handle(self, turn, event, event.message)

    def _classic_request(self, turn: Turn, event: GroupRequest, request: ClassicRequest) -> None:
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) and not (
            group.is_empty and isinstance(request, JoinGroupRequest)
        ):
            answer = consumer_groups.answer_classic_request
            turn.effects += answer(self._consumer, group, event, turn.now_ms)
        elif isinstance(group, ShareGroup) and isinstance(request, JoinGroupRequest):
            refused = JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            turn.reply(event.waiter, refused)
        else:
            handle_classic(turn, self.groups, event, request)

    def _consumer_heartbeat(
        self, turn: Turn, event: GroupRequest, request: ConsumerGroupHeartbeatRequest
    ) -> None:
        if isinstance(self.groups.get(request.group_id), ShareGroup):
            detail = f"Group {request.group_id} is not a consumer group."
            refusal = ConsumerGroupHeartbeatResponse(
                error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=detail
            )
            turn.reply(event.waiter, refusal)
            return
        classic = ConvertibleClassicGroups(turn, self.groups)
        turn.effects += consumer_groups.answer_heartbeat(self._consumer, classic, event, turn.now_ms)

    def _share_heartbeat(self, turn: Turn, event: GroupRequest, _: ShareGroupHeartbeatRequest) -> None:
        share_heartbeat.heartbeat(self._share, turn, event)

    def _timer_fired(self, turn: Turn, key: TimerKey) -> None:
        if key == EXPIRY_TIMER:
            self._expire(turn)
            turn.set_timer(EXPIRY_TIMER, turn.settings.offsets_retention_check_interval_ms)
            return
        if key.kind in CONSUMER_TIMERS:
            turn.effects += consumer_groups.timer_fired(self._consumer, key, turn.now_ms)
            return
        if key.kind in share_groups.TIMER_KINDS:
            share_groups.timer_fired(self._share, turn, key)
            return
        group = self.groups.get(key.group_id)
        if not isinstance(group, ClassicGroup):
            return
        if key.kind == REBALANCE_TIMER:
            rebalance_after_downgrade(turn, group)
        else:
            classic_timer_fired(turn, group, key)

    # Offsets -----------------------------------------------------------------------------------------------

    def _commit_offsets(self, turn: Turn, event: GroupRequest, request: OffsetCommitRequest) -> None:
        group = self.groups.get(request.group_id)
        committer = offset_requests.committer_of(request, event.api_version)
        try:
            if group is not None:
                check = group.check_offset_commit(committer)
            elif committer.generation_id < 0:
                check = None  # a consumer that assigns its partitions itself, or an admin
            else:
                known = event.api_version >= _NOT_FOUND_SINCE
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if known else ErrorCode.ILLEGAL_GENERATION)
            records, response = offset_requests.commit(
                request, check, turn.now_ms, turn.settings.offset_metadata_max_bytes
            )
        except KafkaError as error:
            turn.reply(event.waiter, offset_requests.commit_error(request, error.code))
            return
        if isinstance(group, ClassicGroup):
            offsets_committed(turn, group, committer)
        turn.append(records)
        turn.reply(event.waiter, response)

    def _commit_offsets_in_transaction(
        self, turn: Turn, event: GroupRequest, request: TxnOffsetCommitRequest
    ) -> None:
        try:
            records, response = txn_offset_requests.commit(
                request,
                event.api_version,
                self.groups.get(request.group_id),
                self._topics,
                turn.now_ms,
                turn.settings.offset_metadata_max_bytes,
            )
        except KafkaError as error:
            turn.reply(event.waiter, txn_offset_requests.commit_error(request, error.code))
            return
        if records:
            turn.effects.append(Append(tuple(records), request.producer_id, request.producer_epoch))
        turn.reply(event.waiter, response)

    def fetch_offsets(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool = False
    ) -> OffsetFetchResponseGroup:
        """Committed offsets; raises KafkaError when the group refuses."""
        group = self.groups.get(request.group_id)
        return offset_requests.fetch(self.offsets, group, request, require_stable=require_stable)

    def _delete_offsets(self, turn: Turn, event: GroupRequest, request: OffsetDeleteRequest) -> None:
        group = self.groups.get(request.group_id)
        try:
            if group is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
            records, response = offset_requests.delete(self.offsets, group, request)
        except KafkaError as error:
            turn.reply(event.waiter, OffsetDeleteResponse(error_code=error.code))
            return
        turn.append(records)
        turn.reply(event.waiter, response)

    def _expire(self, turn: Turn) -> None:
        """Forget expired offsets, and groups that have neither members nor offsets."""
        retention_ms = turn.settings.offsets_retention_ms
        for group_id, group in list(self.groups.items()):
            if isinstance(group, ShareGroup):
                continue  # it stays until it is deleted
            records, all_expired = self.offsets.expire(group_id, group, turn.now_ms, retention_ms)
            if all_expired and group.is_empty and not _awaits_members(group):
                self._retire(turn, group)
                records += group.tombstones()
            turn.append(records)

    # Groups ------------------------------------------------------------------------------------------------

    def list_groups(self, states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
        return admin.list_groups(self.groups, states, types)

    def describe_classic_group(self, group_id: str, api_version: int) -> DescribedGroup:
        return admin.describe_classic(group_id, self.groups.get(group_id), api_version)

    def describe_consumer_group(self, group_id: str) -> DescribedConsumerGroup:
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return unknown_group(group_id, exists=group is not None)
        return describe_group(group, self._consumer.settings.assignors[0], self._topics)

    def describe_share_group(self, group_id: str) -> DescribedShareGroup:
        group = self.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return share_groups.unknown_group(group_id, exists=group is not None)
        return share_groups.describe_group(group, self._topics)

    def share_group(self, group_id: str) -> ShareGroup:
        """The share group of this id; GROUP_ID_NOT_FOUND."""
        return share_heartbeat.find_group(self.groups, group_id)

    def _delete_groups(self, turn: Turn, event: GroupRequest, request: DeleteGroupsRequest) -> None:
        response = DeleteGroupsResponse()
        for group_id in request.groups_names:
            result = DeletableGroupResult(group_id)
            response.results.append(result)
            group = self.groups.get(group_id)
            try:
                if group is None:
                    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
                group.check_delete()
            except KafkaError as error:
                result.error_code = error.code
                continue
            self._retire(turn, group)
            turn.append([*self.offsets.delete_group(group_id), *group.tombstones()])
        turn.reply(event.waiter, response)

    def _retire(self, turn: Turn, group: Group) -> None:
        if isinstance(group, ClassicGroup):
            retire(turn, group)


def _awaits_members(group: Group) -> bool:
    return isinstance(group, ClassicGroup) and bool(group.pending_join)


_REQUESTS: Final[Mapping[type[Message], Callable[[GroupShard, Turn, GroupRequest, Any], None]]] = {
    JoinGroupRequest: GroupShard._classic_request,
    SyncGroupRequest: GroupShard._classic_request,
    HeartbeatRequest: GroupShard._classic_request,
    LeaveGroupRequest: GroupShard._classic_request,
    ConsumerGroupHeartbeatRequest: GroupShard._consumer_heartbeat,
    ShareGroupHeartbeatRequest: GroupShard._share_heartbeat,
    OffsetCommitRequest: GroupShard._commit_offsets,
    TxnOffsetCommitRequest: GroupShard._commit_offsets_in_transaction,
    OffsetDeleteRequest: GroupShard._delete_offsets,
    DeleteGroupsRequest: GroupShard._delete_groups,
}
