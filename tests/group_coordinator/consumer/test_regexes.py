"""Subscriptions by regular expression: RE2's rules, when they are resolved, and what then happens to the group."""

import pytest

from ottla.group_coordinator.consumer.regexes import compile_regex
from ottla.group_coordinator.consumer.state import ConsumerGroup
from ottla.group_coordinator.effects import TopicsChanged
from ottla.group_coordinator.topics import Topic
from ottla.wire.errors import ErrorCode, KafkaError
from tests.group_coordinator.consumer.kafka_groups import KafkaGroups
from tests.group_coordinator.consumer.member import Member, settle
from tests.group_coordinator.driver import Driver, FakeTopics

NAMES = ["orders", "orders-eu", "Orders", "o", "a.b", "aXb", "logs-1", "logs-22", "ordersé"]
GOOD = [
    "orders",
    "orders.*",
    "(?i)orders",
    r"logs-\d",
    r"logs-\d+",
    "a.b",
    r"a\.b",
    "o|a.b",
    "^o$",
    "[^o].*",
    r"\Qa.b\E",
]
GOOD += ["(?P<name>o)", "", ".*", r"\pL+", "o{1,2}", "(o)(r)?.*"]
BAD = [
    "(",
    ")",
    "[",
    "*",
    "+a",
    "a**",
    "a{2,1}",
    "a{1001}",
    "[z-a]",
    r"\1",
    "a(?=b)",
    "(?<!a)",
    "(?P<n",
    "\\",
    r"\8",
]
BAD += ["[[:nope:]]"]

OTHER_WORDS = [")", "(?<!a)"]
"""Kafka refuses these too, but its library blames itself for one and takes the other for a named group."""


def group_of(driver: Driver) -> ConsumerGroup:
    """The group g."""
    group = driver.shard.groups["g"]
    assert isinstance(group, ConsumerGroup)
    return group


def create(driver: Driver, *names: str) -> None:
    """Topics of one partition come into being."""
    for name in names:
        driver.topics.topics[name] = Topic(name, name.encode().ljust(16, b"_")[:16], 1)
    driver.topics.version += 1
    driver.happen(TopicsChanged(frozenset(names), frozenset()))


@pytest.mark.parametrize("expression", GOOD)
def test_what_matches(kafka: KafkaGroups, expression: str) -> None:
    """The same names as in Kafka, whole names only."""
    matches = {name for name in NAMES if compile_regex(expression).fullmatch(name.encode())}
    assert (None, matches) == kafka.match(expression, NAMES)


@pytest.mark.parametrize("expression", BAD)
def test_what_is_refused(kafka: KafkaGroups, expression: str) -> None:
    """INVALID_REGULAR_EXPRESSION, and Kafka's reason."""
    with pytest.raises(KafkaError) as refused:
        compile_regex(expression)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    reason, _ = kafka.match(expression, [])
    if expression in OTHER_WORDS:
        assert reason is not None
        return
    assert (
        refused.value.detail
        == f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {reason}."
    )


def test_a_new_expression_is_resolved_at_once() -> None:
    """The first heartbeat already brings the assignment."""
    driver = Driver(
        FakeTopics(Topic("ab", b"1" * 16, 2), Topic("ac", b"2" * 16, 1), Topic("b", b"3" * 16, 1))
    )
    member = Member(driver, "m", regex="a.")
    member.join()
    assert member.owned == {b"1" * 16: frozenset({0, 1}), b"2" * 16: frozenset({0})}
    assert group_of(driver).resolved_regexes["a."].topics == {"ab", "ac"}


def test_a_bad_expression_changes_nothing() -> None:
    """The member is told why, and there is no group."""
    driver = Driver()
    assert Member(driver, "m", regex="(").join().error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not driver.shard.groups


def test_new_topics_are_matched() -> None:
    """With the next heartbeat, but not within ten seconds of the last look, so that a burst is one rebalance."""
    driver = Driver(FakeTopics(Topic("ab", b"1" * 16, 2)))
    member = Member(driver, "m", regex="a.*")
    member.join()
    create(driver, "ac")
    driver.pass_ms(10_000)
    member.beat()
    assert member.count == 2
    create(driver, "ad")
    driver.pass_ms(1)
    member.beat()
    assert (member.count, member.epoch) == (4, 3)


def test_expressions_are_looked_at_again_after_their_interval() -> None:
    """Even when nobody said that there are new topics."""
    driver = Driver(FakeTopics(), group_consumer_regex_refresh_interval_ms="20000")
    member = Member(driver, "m", regex="a.*")
    member.join()
    driver.topics.topics["ab"] = Topic("ab", b"1" * 16, 1)
    driver.topics.version += 1
    driver.pass_ms(20_000)
    member.beat()
    assert member.count == 0
    driver.pass_ms(1)
    member.beat()
    assert member.count == 1


def test_names_and_expressions_add_up() -> None:
    """A member may have both; another member with other topics shares what both have."""
    driver = Driver(FakeTopics(Topic("ab", b"1" * 16, 2), Topic("b", b"3" * 16, 1)))
    both = Member(driver, "m", "b", regex="a.*")
    both.join()
    assert both.count == 3
    driver.pass_ms(1000)
    other = Member(driver, "o", "ab")
    other.join()
    settle(driver, both, other)
    assert (both.count, other.count) == (2, 1)


def test_an_expression_goes_with_its_last_subscriber() -> None:
    """By leaving, and by subscribing to something else."""
    driver = Driver()
    first, second = Member(driver, "a", regex="t"), Member(driver, "b", regex="t")
    first.join()
    second.join()
    first.leave()
    assert set(group_of(driver).resolved_regexes) == {"t"}
    driver.pass_ms(1000)
    second.beat(subscribed_topic_regex="u")
    assert set(group_of(driver).resolved_regexes) == {"u"}
    second.leave()
    assert not group_of(driver).resolved_regexes


def test_a_member_that_drops_its_expression_loses_its_topics() -> None:
    """An empty expression is none."""
    driver = Driver()
    member = Member(driver, "m", regex="t|u")
    member.join()
    driver.pass_ms(1000)
    member.beat(subscribed_topic_regex="")
    settle(driver, member)
    assert (member.count, group_of(driver).state_name) == (0, "Stable")
