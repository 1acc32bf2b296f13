"""Subscriptions by regular expression: RE2's rules, matched against whole topic names.

Python's `re` has other rules and can take exponential time on what a client sends; google-re2 is RE2 itself and runs in
linear time. What an expression matches in one version of the topics is kept, because groups share expressions.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from ottla.group_coordinator.consumer.resolved import ResolvedRegex
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.topics import Topics
from ottla.wire.errors import ErrorCode, KafkaError

REFRESH_MIN_INTERVAL_MS: Final = 10_000  # topics made in a burst cause one new assignment, not one each
_KEPT: Final = 256
_KAFKAS_WORDS: Final[Mapping[str, str]] = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}
"""What RE2's library says, as the Java one says it."""


@lru_cache(maxsize=_KEPT)
def compile_regex(expression: str) -> Any:
    """The compiled expression; INVALID_REGULAR_EXPRESSION when RE2 does not take it."""
    import re2  # a broker without such subscriptions starts without it

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(expression.encode(), options)
    except re2.error as error:
        said = error.args[0].decode(errors="replace").split(":")[0] if error.args else ""
        reason = _KAFKAS_WORDS.get(said, said)
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {reason}.",
        ) from error


class RegexResolver:
    """Matches expressions against topics, and knows when topics were last created."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._matches: dict[str, frozenset[str]] = {}
        self._matches_version = -1
        self._names: list[tuple[bytes, str]] = []
        self._newest_topics_version = topics.version

    def topics_created(self) -> None:
        """Expressions that were resolved before now may match more."""
        self._newest_topics_version = self._topics.version

    def is_due(self, group: ConsumerGroup, expressions: Iterable[str], interval_ms: int, now_ms: int) -> bool:
        """Must the expressions of a group be resolved: is one new, were topics made, or is it long ago?"""
        resolved = [group.resolved_regexes.get(expression) for expression in expressions]
        if not resolved:
            return False
        if None in resolved:
            return True
        last_ms = max(each.timestamp_ms for each in resolved if each is not None)
        if now_ms <= last_ms + REFRESH_MIN_INTERVAL_MS:
            return False
        version = min(each.version for each in resolved if each is not None)
        return version < self._newest_topics_version or now_ms > last_ms + interval_ms

    def resolve(self, expressions: Iterable[str], now_ms: int) -> Mapping[str, ResolvedRegex]:
        """What they match now."""
        version = self._topics.version
        return {
            expression: ResolvedRegex(self._match(expression), version, now_ms)
            for expression in sorted(expressions)
        }

    def _match(self, expression: str) -> frozenset[str]:
        if self._matches_version != self._topics.version:
            self._matches.clear()
            self._names = [(name.encode(), name) for name in self._topics.names()]
            self._matches_version = self._topics.version
        found = self._matches.get(expression)
        if found is None:
            try:
                matches = compile_regex(expression).fullmatch
            except KafkaError:
                return frozenset()  # another broker let it into the log
            if len(self._matches) >= _KEPT:
                self._matches.clear()
            found = frozenset(name for encoded, name in self._names if matches(encoded))
            self._matches[expression] = found
        return found
