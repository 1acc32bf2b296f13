"""Topics are made, grow, and go."""

from compat_tests.matrix.calls import (
    LOCAL,
    attempt_of,
    create,
    create_spec,
    expect_one_of,
    fetch,
    metadata,
    numbered,
    produce,
    values,
)
from compat_tests.matrix.case import Run, case, expect

AREA = "topics"


def there(run: Run, topic: str) -> int:
    """How many partitions the topic has, 0 if there is no such topic; seen by another client."""
    found = metadata(run.stage, topic)["topics"].get(topic)
    return 0 if found is None or found["error"] else len(found["partitions"])


def wait_for(run: Run, topic: str, partitions: int) -> None:
    """Brokers learn of it a moment after the controller has answered."""
    run.until(lambda: there(run, topic), lambda seen: seen == partitions)


@case(AREA, "create", quick=True)
def creates(run: Run) -> object:
    topic = run.topic()
    expect(create(run, create_spec(topic, 3)), None)
    wait_for(run, topic, 3)
    return None


@case(AREA, "create with configs")
def creates_with_configs(run: Run) -> object:
    topic = run.topic()
    expect(
        create(run, create_spec(topic, 1, configs={"cleanup.policy": "compact", "segment.bytes": "2097152"})),
        None,
    )
    wait_for(run, topic, 1)
    found = run.stage.call("describe_configs", kind="topic", name=topic)
    seen = {name: found[name]["value"] for name in ("cleanup.policy", "segment.bytes")}
    expect(seen, {"cleanup.policy": "compact", "segment.bytes": "2097152"})
    return None


@case(AREA, "create two in one request")
def creates_two(run: Run) -> object:
    first, second = run.topic(), run.topic()
    found = run.call(
        "create_topics", topics=[create_spec(first), create_spec(second, 2)], validate_only=False
    )
    expect(found, {first: None, second: None})
    wait_for(run, first, 1)
    wait_for(run, second, 2)
    return None


@case(AREA, "create with the broker's number of partitions and replicas")
def creates_with_defaults(run: Run) -> object:
    topic = run.topic()
    answer = create(run, create_spec(topic, -1, -1))
    expect_one_of(answer, [None, LOCAL])
    if answer is None:
        wait_for(run, topic, 1)
    return answer


@case(AREA, "validate_only creates nothing")
def validates(run: Run) -> object:
    topic = run.topic()
    expect(create(run, create_spec(topic), validate_only=True), None)
    bad = create(run, create_spec(topic, replication=9), validate_only=True)
    expect(bad, "INVALID_REPLICATION_FACTOR")
    expect(there(run, topic), 0)
    return bad


@case(AREA, "what exists is not created again", quick=True)
def exists(run: Run) -> object:
    topic = run.create()
    answer = create(run, create_spec(topic))
    expect(answer, "TOPIC_ALREADY_EXISTS")
    return answer


@case(AREA, "two names that metrics could not tell apart")
def collides(run: Run) -> object:
    topic = run.name("a.b")
    expect(create(run, create_spec(topic)), None)
    answer = create(run, create_spec(topic.replace(".", "_")))
    expect(answer, "INVALID_TOPIC_EXCEPTION")
    return answer


NAMES = {
    "with a space": "not valid",
    "with a slash": "a/b",
    "of one dot": ".",
    "of two dots": "..",
    "of 250 letters": "n" * 250,
}


@case(AREA, "a name {kind} is refused", over={"kind": list(NAMES)})
def invalid_name(run: Run, kind: str) -> object:
    answer = create(run, create_spec(NAMES[kind]))
    expect_one_of(answer, ["INVALID_TOPIC_EXCEPTION", LOCAL])
    return answer


@case(AREA, "a name of 249 letters is the longest")
def longest_name(run: Run) -> object:
    topic = run.topic().ljust(249, "n")
    expect(create(run, create_spec(topic)), None)
    wait_for(run, topic, 1)
    return None


@case(AREA, "no partitions are refused", over={"partitions": [0, -2]})
def bad_partitions(run: Run, partitions: int) -> object:
    answer = create(run, create_spec(run.topic(), partitions))
    expect_one_of(answer, ["INVALID_PARTITIONS", LOCAL])
    return answer


@case(AREA, "more replicas than brokers are refused")
def bad_replication(run: Run) -> object:
    answer = create(run, create_spec(run.topic(), 1, 3))
    expect(answer, "INVALID_REPLICATION_FACTOR")
    return answer


@case(AREA, "no replicas are refused")
def no_replicas(run: Run) -> object:
    answer = create(run, create_spec(run.topic(), 1, 0))
    expect_one_of(answer, ["INVALID_REPLICATION_FACTOR", LOCAL])
    return answer


CONFIGS = {
    "an unknown name": {"no.such.config": "1"},
    "a word for a number": {"retention.ms": "long"},
    "a number out of range": {"min.cleanable.dirty.ratio": "2"},
    "a policy that is none": {"cleanup.policy": "shred"},
}


@case(AREA, "create with {kind} among the configs is refused", over={"kind": list(CONFIGS)})
def bad_config(run: Run, kind: str) -> object:
    topic = run.topic()
    answer = create(run, create_spec(topic, configs=CONFIGS[kind]))
    expect(answer, "INVALID_CONFIG")
    expect(there(run, topic), 0)
    return answer


@case(AREA, "delete", quick=True)
def deletes(run: Run) -> object:
    topic = run.create(partitions=2)
    expect(attempt_of(run, topic, "delete_topics", topics=[topic]), None)
    wait_for(run, topic, 0)
    return None


@case(AREA, "delete an unknown topic")
def deletes_unknown(run: Run) -> object:
    topic = run.topic()
    answer = attempt_of(run, topic, "delete_topics", topics=[topic])
    expect(answer, "UNKNOWN_TOPIC_OR_PARTITION")
    return answer


@case(AREA, "delete one that is there and one that is not")
def deletes_some(run: Run) -> object:
    topic, unknown = run.create(), run.topic()
    found = run.call("delete_topics", topics=[topic, unknown])
    expect(found, {topic: None, unknown: "UNKNOWN_TOPIC_OR_PARTITION"})
    return None


@case(AREA, "a topic of the same name is a new one")
def created_again(run: Run) -> object:
    topic = run.create()
    produce(run.stage, topic, numbered(3))
    expect(attempt_of(run, topic, "delete_topics", topics=[topic]), None)
    wait_for(run, topic, 0)
    expect(create(run, create_spec(topic)), None)
    wait_for(run, topic, 1)
    expect(produce(run, topic, numbered(1)), [{"partition": 0, "offset": 0}])
    expect(values(fetch(run, topic)), ["value-0"])
    return None


@case(AREA, "more partitions")
def grows(run: Run) -> object:
    topic = run.create(partitions=1)
    expect(attempt_of(run, topic, "create_partitions", topics={topic: 4}), None)
    wait_for(run, topic, 4)
    return None


@case(AREA, "fewer, or as many, partitions are refused", over={"total": [1, 2]})
def shrinks(run: Run, total: int) -> object:
    topic = run.create(partitions=2)
    answer = attempt_of(run, topic, "create_partitions", topics={topic: total})
    expect_one_of(answer, ["INVALID_PARTITIONS", LOCAL])
    expect(there(run, topic), 2)
    return answer


@case(AREA, "more partitions of an unknown topic")
def grows_unknown(run: Run) -> object:
    topic = run.topic()
    answer = attempt_of(run, topic, "create_partitions", topics={topic: 2})
    expect(answer, "UNKNOWN_TOPIC_OR_PARTITION")
    return answer


@case(AREA, "records go to the partitions that were added")
def grown_serves(run: Run) -> object:
    topic = run.create(partitions=1)
    expect(attempt_of(run, topic, "create_partitions", topics={topic: 2}), None)
    wait_for(run, topic, 2)
    expect(produce(run, topic, numbered(2, partition=1)), [{"partition": 1, "offset": n} for n in range(2)])
    return values(fetch(run, topic, 1))
