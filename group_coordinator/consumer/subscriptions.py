"""What a group subscribes to, as it is and as it will be when a member has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ottla.group_coordinator.consumer.member import ConsumerGroupMember
from ottla.group_coordinator.consumer.resolved import ResolvedRegex
from ottla.group_coordinator.consumer.state import ConsumerGroup, is_homogeneous
from ottla.group_coordinator.topics import Topics
from ottla.wire.dataclass import dataclass
from ottla.wire.uuids import Uuid


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """Names and regular expressions with the numbers of members that subscribe to them."""

    name_counts: Mapping[str, int]
    regex_counts: Mapping[str, int]
    resolved: Mapping[str, ResolvedRegex]

    @property
    def topic_names(self) -> set[str]:
        """All topics, whether they exist or not."""
        names = set(self.name_counts)
        for expression in self.regex_counts:
            if expression in self.resolved:
                names |= self.resolved[expression].topics
        return names

    def is_homogeneous(self, member_count: int) -> bool:
        """Do this many members all subscribe to the same?"""
        return is_homogeneous(self.regex_counts, self.name_counts, member_count)


def current_subscriptions(group: ConsumerGroup) -> Subscriptions:
    """What the group subscribes to; good until the next record is applied."""
    return Subscriptions(group.name_counts, group.regex_counts, group.resolved_regexes)


def subscriptions_after(
    group: ConsumerGroup,
    removed: Iterable[ConsumerGroupMember],
    added: ConsumerGroupMember | None = None,
) -> Subscriptions:
    """What the group subscribes to when these members are gone and this one is there."""
    names, regexes = Counter(group.name_counts), Counter(group.regex_counts)
    for member in removed:
        names.subtract(member.topic_names)
        if member.topic_regex:
            regexes[member.topic_regex] -= 1
    if added is not None:
        names.update(added.topic_names)
        if added.topic_regex:
            regexes[added.topic_regex] += 1
    return Subscriptions(+names, +regexes, group.resolved_regexes)


def topics_of(member: ConsumerGroupMember, resolved: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """The names of the topics of one member."""
    found = resolved.get(member.topic_regex) if member.topic_regex else None
    return member.topic_names if found is None else member.topic_names | found.topics


def topic_ids_of(names: Iterable[str], topics: Topics) -> frozenset[Uuid]:
    """The ids of those that exist."""
    known = map(topics.by_name, names)
    return frozenset(topic.topic_id for topic in known if topic is not None)
