"""Kafka's tools on groups and transactions."""

import base64
import re

from compat_tests.matrix.calls import share_from_the_beginning
from compat_tests.matrix.case import Run, case, expect
from compat_tests.matrix.ecosystem.kafka_clients import TOOLS
from compat_tests.matrix.ecosystem.tool_runs import AREA, produce, refusal, say

GROUPS = "consumer.group.ConsumerGroupCommand"
SHARE_GROUPS = "consumer.group.ShareGroupCommand"
LIMITS = ("--max-messages", "10", "--timeout-ms", "60000")


def _group(run: Run, protocol: str) -> tuple[str, str]:
    """A topic of ten records, and a group that has read them and is empty again."""
    topic, group = run.create(1), run.group()
    produce(run, topic, [f"value {number}" for number in range(10)])
    reading = ("--topic", topic, "--group", group, "--from-beginning", *LIMITS)
    say(run, "consumer.ConsoleConsumer", *reading, "--command-property", f"group.protocol={protocol}")
    return topic, group


@case(AREA, "kafka-consumer-groups", over={"protocol": ["classic", "consumer"]}, clients=[TOOLS])
def consumer_groups(run: Run, protocol: str) -> object:
    """An empty group: listed, described in each way, its offsets reset in each way and deleted, and itself deleted."""
    topic, group = _group(run, protocol)
    named = ("--group", group)
    answers: list[object] = [
        [line for line in say(run, GROUPS, "--list", "--state", "--type") if group in line]
    ]
    for how in (("--offsets",), ("--members", "--verbose"), ("--state",), ("--state", "--verbose")):
        answers.append(say(run, GROUPS, "--describe", *named, *how))
    for where in (
        ("--to-earliest",),
        ("--to-latest",),
        ("--to-offset", "4"),
        ("--shift-by", "3"),
        ("--to-datetime", "2023-11-14T22:13:20.002"),
        ("--by-duration", "P1D"),
        ("--to-current",),
    ):
        reset = ("--reset-offsets", *named, "--topic", topic, *where)
        answers.append(say(run, GROUPS, *reset, "--execute"))
    exported = say(
        run, GROUPS, "--reset-offsets", *named, "--topic", topic, "--to-offset", "5", "--export", "--dry-run"
    )
    answers.append(exported)
    answers.append(say(run, GROUPS, "--delete-offsets", *named, "--topic", topic))
    answers.append(say(run, GROUPS, "--delete", *named))
    answers.append(refusal(run, GROUPS, "--describe", *named))
    answers.append(refusal(run, GROUPS, "--delete", *named))
    return answers


@case(AREA, "kafka-consumer-groups: a group with a member", clients=[TOOLS])
def group_with_a_member(run: Run) -> object:
    """The member is shown with its partitions; such a group is neither reset nor deleted."""
    topic, group = run.create(2), run.group()
    produce(run, topic, ["a", "b", "c"])
    stage = run.stage
    stage.call(
        "join",
        as_="m",
        group=group,
        topics=[topic],
        protocol="classic",
        assignor="range",
        isolation="read_committed",
    )
    try:
        run.until(
            lambda: stage.call("poll", as_="m", wait_ms=500)["assignment"],
            lambda seen: seen == {topic: [0, 1]},
        )
        stage.call("commit", as_="m", offsets={topic: {"0": 1}})
        answers: list[object] = []
        for how in ("--offsets", "--members", "--state"):
            lines = say(run, GROUPS, "--describe", "--group", group, how)
            # The id of the member is the library's, and where it is from this machine's.
            answers.append([re.sub(r"rdkafka\S*", "MEMBER", line) for line in lines])
        reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-latest", "--execute")
        answers.append(say(run, GROUPS, *reset))
        answers.append(refusal(run, GROUPS, "--delete", "--group", group))
    finally:
        stage.call("leave", as_="m")
    return answers


@case(AREA, "kafka-groups", clients=[TOOLS])
def groups(run: Run) -> object:
    """Groups of all kinds in one list."""
    _, classic = _group(run, "classic")
    _, consumer = _group(run, "consumer")
    topic, share = run.create(1), run.group()
    produce(run, topic, ["a"])
    _read_as_a_share(run, topic, share, 1)
    ours = (classic, consumer, share)
    lines = [line for line in say(run, "GroupsCommand", "--list") if line.split()[0] in ours]
    filtered = [
        line
        for line in say(run, "GroupsCommand", "--list", "--group-type", "share")
        if line.split()[0] in ours
    ]
    expect([line.split()[1] for line in sorted(lines)], ["Classic", "Consumer", "Share"], "the types")
    return [sorted(lines), filtered]


def _read_as_a_share(run: Run, topic: str, group: str, count: int) -> None:
    share_from_the_beginning(run, group)
    limits = ("--max-messages", str(count), "--timeout-ms", "60000")
    say(run, "consumer.ConsoleShareConsumer", "--topic", topic, "--group", group, *limits)


@case(AREA, "kafka-share-groups", clients=[TOOLS])
def share_groups(run: Run) -> object:
    """Listed, described in each way, offsets reset and deleted, and the group deleted."""
    topic, group = run.create(1), run.group()
    produce(run, topic, [f"value {number}" for number in range(10)])
    _read_as_a_share(run, topic, group, 10)
    named = ("--group", group)
    answers = [[line for line in say(run, SHARE_GROUPS, "--list") if group in line]]
    for how in ("--offsets", "--members", "--state"):
        answers.append(say(run, SHARE_GROUPS, "--describe", *named, how))
    for where in ("--to-earliest", "--to-latest"):
        answers.append(
            say(run, SHARE_GROUPS, "--reset-offsets", *named, "--topic", topic, where, "--execute")
        )
    answers.append(say(run, SHARE_GROUPS, "--delete-offsets", *named, "--topic", topic))
    answers.append(say(run, SHARE_GROUPS, "--delete", *named))
    return answers


@case(AREA, "kafka-transactions", clients=[TOOLS])
def transactions(run: Run) -> object:
    """One that is open is listed, described and found in its partition; terminated, it is aborted."""
    topic, name = run.create(1), run.name("transactional-id")
    stage = run.stage
    stage.call("txn_init", as_="t", id=name, timeout_ms=60_000)
    try:
        stage.call("txn_begin", as_="t")
        stage.call("txn_send", as_="t", topic=topic, partition=0, values=[base64.b64encode(b"lost").decode()])
        listed = [line for line in say(run, "TransactionsCommand", "list") if line.startswith(name)]
        described = say(run, "TransactionsCommand", "describe", "--transactional-id", name)
        in_partition = ("describe-producers", "--topic", topic, "--partition", "0")
        found = say(run, "TransactionsCommand", *in_partition)
        hanging = say(run, "TransactionsCommand", "find-hanging", "--topic", topic)
        ended = say(run, "TransactionsCommand", "forceTerminateTransaction", "--transactionalId", name)
        run.until(
            lambda: say(run, "TransactionsCommand", *in_partition)[-1].split()[-1],
            lambda seen: seen == "None",
        )
    finally:
        stage.call("txn_close", as_="t")
    # Ids of producers are given out one after the other, to whoever comes.
    numbers = re.compile(r"\b\d+\b")
    answers = [listed, described, found, hanging, ended]
    return [[numbers.sub("N", line) for line in lines] for lines in answers]
