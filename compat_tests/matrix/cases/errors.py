"""What is wrong, and what a client is told about it."""

from typing import Any

from compat_tests.matrix.calls import (
    LOCAL,
    attempt,
    attempt_of,
    create,
    create_spec,
    expect_one_of,
    fetch,
    join,
    numbered,
    produce,
    record,
)
from compat_tests.matrix.case import Run, case, expect
from compat_tests.matrix.members import settle

AREA = "errors"


def poll_until_refused(run: Run, name: str) -> str:
    """The error that a member meets when it joins."""
    found = run.until(lambda: attempt(run, "poll", as_=name, wait_ms=200), lambda seen: isinstance(seen, str))
    return str(found)


def refused(run: Run, name: str, group: str, topics: list[str], **settings: Any) -> str:
    """The error of a join, at once or in the first polls."""
    try_to_join = attempt(
        run,
        "join",
        as_=name,
        **{
            "group": group,
            "topics": topics,
            "pattern": None,
            "assignor": None,
            "protocol": "classic",
            "remote_assignor": None,
            "instance_id": None,
            "isolation": "read_uncommitted",
            "session_ms": None,
            **settings,
        },
    )
    return try_to_join if isinstance(try_to_join, str) else poll_until_refused(run, name)


@case(
    AREA,
    "a topic's name that cannot be, for {call}",
    over={"call": ["delete_topics", "create_partitions", "describe_configs"]},
)
def invalid_name(run: Run, call: str) -> object:
    name = "not valid"
    if call == "delete_topics":
        answer = attempt_of(run, name, call, topics=[name])
    elif call == "create_partitions":
        answer = attempt_of(run, name, call, topics={name: 2})
    else:
        answer = attempt(run, call, kind="topic", name=name)
    expect_one_of(answer, ["UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION", LOCAL, {}])
    return answer


@case(AREA, "produce to a name that cannot be")
def produce_invalid_name(run: Run) -> object:
    answer = attempt(
        run,
        "produce",
        topic="not valid",
        records=[record(b"v")],
        acks=-1,
        codec="none",
        idempotent=False,
        max_request_bytes=None,
    )
    seen = answer if isinstance(answer, str) else answer[0].get("error")
    expect_one_of(seen, ["INVALID_TOPIC_EXCEPTION", LOCAL])
    return seen


@case(AREA, "metadata of a name that cannot be")
def metadata_invalid_name(run: Run) -> object:
    answer = attempt(run, "metadata", topics=["not valid"])
    seen = answer if isinstance(answer, str) else answer["topics"].get("not valid", {}).get("error")
    expect_one_of(seen, ["INVALID_TOPIC_EXCEPTION", "UNKNOWN_TOPIC_OR_PARTITION", LOCAL, None])
    return seen


@case(AREA, "produce to the topic of the group coordinator")
def produce_internal(run: Run) -> object:
    group = run.group()
    run.stage.call(
        "alter_group_offsets", group=group, offsets={run.create(): {"0": 1}}
    )  # which makes that topic
    [answer] = produce(run, "__consumer_offsets", [record(b"v", b"k")])
    expect_one_of(answer.get("error"), ["INVALID_TOPIC_EXCEPTION", LOCAL])
    return answer


@case(AREA, "create the topic of the group coordinator")
def create_internal(run: Run) -> object:
    run.stage.call("alter_group_offsets", group=run.group(), offsets={run.create(): {"0": 1}})
    answer = create(run, create_spec("__consumer_offsets"))
    expect(answer, "TOPIC_ALREADY_EXISTS")
    return answer


@case(AREA, "one topic of two is refused, the other is made")
def create_one_of_two(run: Run) -> object:
    good, bad = run.topic(), run.topic()
    found = run.call(
        "create_topics", topics=[create_spec(good), create_spec(bad, replication=5)], validate_only=False
    )
    expect(found, {good: None, bad: "INVALID_REPLICATION_FACTOR"})
    return None


@case(AREA, "one record of three is too large")
def one_of_three(run: Run) -> object:
    topic = run.create(configs={"max.message.bytes": "3000"}, partitions=3)
    records = [record(b"x" * size, partition=number) for number, size in enumerate((10, 9000, 10))]
    answers = produce(run, topic, records)
    expect(
        answers,
        [{"partition": 0, "offset": 0}, {"error": "MESSAGE_TOO_LARGE"}, {"partition": 2, "offset": 0}],
    )
    return answers


@case(AREA, "produce goes on after a refusal")
def goes_on(run: Run) -> object:
    topic = run.create(configs={"max.message.bytes": "3000"})
    for _ in range(2):
        expect(produce(run, topic, [record(b"x" * 9000)]), [{"error": "MESSAGE_TOO_LARGE"}])
    expect(produce(run, topic, numbered(2)), [{"partition": 0, "offset": number} for number in range(2)])
    return None


@case(AREA, "an idempotent producer is told what is too large")
def too_large_idempotent(run: Run) -> object:
    topic = run.create(configs={"max.message.bytes": "3000"})
    answers = produce(run, topic, [record(b"x" * 9000)], idempotent=True)
    expect(answers, [{"error": "MESSAGE_TOO_LARGE"}])
    return answers


@case(AREA, "{codec} that is too large even so", over={"codec": ["gzip", "zstd"]})
def too_large_compressed(run: Run, codec: str) -> object:
    topic = run.create(configs={"max.message.bytes": "3000"})
    noise = bytes((number * number * 31 + number // 7) % 251 for number in range(20_000))
    answers = produce(run, topic, [record(noise)], codec=codec)
    expect(produce(run, topic, [record(b"x" * 20_000)], codec=codec)[0].get("error"), None)
    return answers


@case(AREA, "an offset far out of range, twice, and one that is there")
def recovers(run: Run) -> object:
    topic = run.create()
    produce(run.stage, topic, numbered(3))
    for _ in range(2):
        answer = attempt(
            run, "fetch", topic=topic, partition=0, offset=10_000, count=1, isolation="read_uncommitted"
        )
        expect(answer, "OFFSET_OUT_OF_RANGE")
    return len(fetch(run, topic))


@case(AREA, "a partition that is not there")
def unknown_partition(run: Run) -> object:
    topic = run.create()
    answer = attempt(run, "fetch", topic=topic, partition=9, offset=0, count=1, isolation="read_uncommitted")
    expect_one_of(answer, ["UNKNOWN_TOPIC_OR_PARTITION", LOCAL])
    return answer


@case(AREA, "delete records of a partition that is not there")
def delete_records_unknown(run: Run) -> object:
    answer = attempt_of(run, "9", "delete_records", topic=run.create(), before={"9": 1})
    expect_one_of(answer, ["UNKNOWN_TOPIC_OR_PARTITION", LOCAL])
    return answer


@case(AREA, "a session shorter than the broker allows")
def short_session(run: Run) -> object:
    answer = refused(run, "member", run.group(), [run.create()], session_ms=800)
    expect_one_of(answer, ["INVALID_SESSION_TIMEOUT", LOCAL])
    return answer


@case(AREA, "an assignor that the others do not have")
def inconsistent(run: Run) -> object:
    topic, group = run.create(), run.group()
    join(run, "first", group, [topic], assignor="range")
    settle(run, ["first"], {topic: 1})
    answer = refused(run, "second", group, [topic], assignor="roundrobin")
    expect_one_of(answer, ["INCONSISTENT_GROUP_PROTOCOL", LOCAL])
    return answer


@case(AREA, "a server's assignor that is none (KIP-848)", since="4.0")
def unsupported_assignor(run: Run) -> object:
    answer = refused(
        run, "member", run.group(), [run.create()], protocol="consumer", remote_assignor="unheard-of"
    )
    expect_one_of(answer, ["UNSUPPORTED_ASSIGNOR", LOCAL])
    return answer


@case(AREA, "a pattern that is none (KIP-848)", since="4.0")
def invalid_pattern(run: Run) -> object:
    answer = refused(run, "member", run.group(), None, protocol="consumer", pattern="^topic-(")  # type: ignore[arg-type]
    expect_one_of(answer, ["INVALID_REGULAR_EXPRESSION", LOCAL])
    return answer


@case(AREA, "an empty group id")
def no_group(run: Run) -> object:
    answer = attempt_of(run, "", "delete_groups", groups=[""])
    expect_one_of(answer, ["INVALID_GROUP_ID", "GROUP_ID_NOT_FOUND", LOCAL])
    return answer


@case(AREA, "configs of a kind that topics do not have")
def config_of_broker_on_topic(run: Run) -> object:
    answer = attempt(
        run, "alter_configs", kind="topic", name=run.create(), set={"log.retention.ms": "5"}, delete=[]
    )
    expect(answer, "INVALID_CONFIG")
    return answer


@case(AREA, "a dynamic config of the broker with a bad value")
def bad_broker_config(run: Run) -> object:
    name = str(run.stage.call("describe_cluster")["brokers"][0])
    change = {"log.cleaner.threads": "none"}
    answer = attempt(run, "alter_configs", kind="broker", name=name, set=change, delete=[])
    expect_one_of(answer, ["INVALID_CONFIG", "INVALID_REQUEST"])
    return answer
