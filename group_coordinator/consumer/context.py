"""What every function of this family works with: the groups, their configs, the topics, and what one event changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ottla.group_coordinator.consumer.regexes import RegexResolver
from ottla.group_coordinator.consumer.replay import Groups
from ottla.group_coordinator.consumer.settings import ConsumerGroupSettings
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.effects import Append, CancelTimer, Effect, SetTimer, TimerKey
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.group_coordinator.topics import Topics

SESSION = "consumer.session"
REBALANCE = "consumer.rebalance"
JOIN = "consumer.join"
SYNC = "consumer.sync"
TIMER_KINDS = (SESSION, REBALANCE, JOIN, SYNC)


@dataclass(slots=True)
class Context:
    """The surroundings of the groups of one shard."""

    groups: Groups
    """Of all kinds; this family minds its own."""
    settings: ConsumerGroupSettings
    topics: Topics
    new_member_id: Callable[[], str]
    regexes: RegexResolver = field(init=False)

    def __post_init__(self) -> None:
        self.regexes = RegexResolver(self.topics)

    def group(self, group_id: str) -> ConsumerGroup | None:
        """The consumer group of this id."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def consumer_groups(self) -> Iterator[ConsumerGroup]:
        """All consumer groups."""
        return (group for group in self.groups.values() if isinstance(group, ConsumerGroup))


@dataclass(slots=True)
class Changes:
    """What an event changes: records to append, and effects that wait until they are."""

    now_ms: int
    records: list[CoordinatorRecord] = field(default_factory=list)
    after: list[Effect] = field(default_factory=list)

    def add(self, records: Iterable[CoordinatorRecord]) -> None:
        """Append these too."""
        self.records.extend(records)

    def set_timer(self, kind: str, group_id: str, member_id: str, delay_ms: int) -> None:
        """Start a timer of a member, or start it again."""
        self.after.append(SetTimer(TimerKey(kind, group_id, member_id), self.now_ms + delay_ms))

    def cancel_timers(self, group_id: str, member_id: str, kinds: Iterable[str] = TIMER_KINDS) -> None:
        """Stop timers of a member."""
        self.after.extend(CancelTimer(TimerKey(kind, group_id, member_id)) for kind in kinds)

    def effects(self, *answers: Effect) -> list[Effect]:
        """In order: the records, the timers, the answers."""
        appended: list[Effect] = [Append(tuple(self.records))] if self.records else []
        return [*appended, *self.after, *answers]
