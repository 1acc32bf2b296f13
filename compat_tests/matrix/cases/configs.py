"""Configs of topics and of the broker."""

from typing import Any

from compat_tests.matrix.calls import attempt, expect_one_of
from compat_tests.matrix.case import Run, case, expect

AREA = "configs"


def described(run: Run, topic: str) -> dict[str, Any]:
    found: dict[str, Any] = run.call("describe_configs", kind="topic", name=topic)
    return found


def broker_id(run: Run) -> str:
    return str(run.stage.call("describe_cluster")["brokers"][0])


def alter(run: Run, topic: str, changes: dict[str, str], delete: list[str] | None = None) -> Any:
    """Null, or the name of the error."""
    return attempt(run, "alter_configs", kind="topic", name=topic, set=changes, delete=delete or [])


def wait_for(run: Run, topic: str, config: str, value: str) -> None:
    """Brokers learn of it a moment after the controller has answered; seen by another client."""

    def observe() -> str:
        found = run.stage.call("describe_configs", kind="topic", name=topic)
        return str(found[config]["value"])

    run.until(observe, lambda seen: seen == value)


@case(AREA, "the defaults of a topic", since="4.0")
def defaults(run: Run) -> object:
    found = described(run, run.create())
    expect(found["cleanup.policy"]["value"], "delete")
    expect(found["segment.bytes"]["value"], "1073741824")
    return {name: each["value"] for name, each in found.items()}


@case(AREA, "which configs of a topic are defaults", quick=True, since="4.1")
def which_are_defaults(run: Run) -> object:
    found = described(run, run.create(configs={"segment.bytes": "2097152"}))
    own = sorted(name for name, each in found.items() if not each["default"])
    expect("segment.bytes" in own and "retention.ms" in own, True, f"what was set is not a default: {own}")
    expect("cleanup.policy" in own, False, "what was not set is a default")
    return own


@case(AREA, "nothing of a topic is read-only or secret", since="4.0")
def open_to_all(run: Run) -> object:
    found = described(run, run.create())
    expect([name for name, each in found.items() if each["read_only"] or each["sensitive"]], [])
    return len(found)


@case(AREA, "set", quick=True)
def sets(run: Run) -> object:
    topic = run.create()
    expect(alter(run, topic, {"retention.bytes": "1000000", "cleanup.policy": "compact,delete"}), None)
    wait_for(run, topic, "retention.bytes", "1000000")
    wait_for(run, topic, "cleanup.policy", "compact,delete")
    found = described(run, topic)
    return {name: found[name] for name in ("retention.bytes", "cleanup.policy", "retention.ms")}


@case(AREA, "delete goes back to the default")
def deletes(run: Run) -> object:
    topic = run.create(configs={"segment.bytes": "2097152", "max.message.bytes": "2000"})
    expect(alter(run, topic, {}, ["segment.bytes"]), None)
    wait_for(run, topic, "segment.bytes", "1073741824")
    found = described(run, topic)
    expect(found["max.message.bytes"]["value"], "2000", "what was not deleted")
    return {name: found[name] for name in ("segment.bytes", "max.message.bytes")}


@case(AREA, "set and delete in one request")
def sets_and_deletes(run: Run) -> object:
    topic = run.create(configs={"segment.bytes": "2097152"})
    expect(alter(run, topic, {"flush.messages": "77"}, ["segment.bytes"]), None)
    wait_for(run, topic, "flush.messages", "77")
    wait_for(run, topic, "segment.bytes", "1073741824")
    return None


BAD = {
    "a word for a number": {"retention.ms": "long"},
    "a number out of range": {"min.cleanable.dirty.ratio": "1.5"},
    "a policy that is none": {"cleanup.policy": "shred"},
    "an unknown name": {"no.such.config": "1"},
    "a codec that is none": {"compression.type": "rar"},
}


@case(AREA, "set {kind} is refused", over={"kind": list(BAD)})
def refuses(run: Run, kind: str) -> object:
    topic = run.create()
    answer = alter(run, topic, BAD[kind])
    expect(answer, "INVALID_CONFIG")
    return answer


@case(AREA, "a bad value keeps the good ones beside it out")
def all_or_nothing(run: Run) -> object:
    topic = run.create()
    answer = alter(run, topic, {"flush.messages": "77", "retention.ms": "long"})
    expect(answer, "INVALID_CONFIG")
    value = described(run, topic)["flush.messages"]["value"]
    expect(value, "9223372036854775807")
    return answer


@case(AREA, "configs of an unknown topic")
def unknown_topic(run: Run) -> object:
    topic = run.topic()
    shown = attempt(run, "describe_configs", kind="topic", name=topic)
    expect_one_of(shown, ["UNKNOWN_TOPIC_OR_PARTITION", {}])  # some libraries show what there is: nothing
    altered = alter(run, topic, {"flush.ms": "5"})
    expect(altered, "UNKNOWN_TOPIC_OR_PARTITION")
    return [shown, altered]


# What both brokers are started with differs in ports and directories, and where Ottla has no such thing.
SHARED = [
    "auto.create.topics.enable",
    "compression.type",
    "default.replication.factor",
    "delete.topic.enable",
    "group.max.session.timeout.ms",
    "log.cleaner.threads",
    "log.retention.hours",
    "log.segment.bytes",
    "message.max.bytes",
    "num.partitions",
    "offsets.retention.minutes",
    "transaction.max.timeout.ms",
]


@case(AREA, "the broker's configs")
def of_broker(run: Run) -> object:
    found: dict[str, Any] = run.call("describe_configs", kind="broker", name=broker_id(run))
    expect([name for name in SHARED if name not in found], [], "configs that are missing")
    expect(found["message.max.bytes"]["value"], "1048588")
    return {name: found[name] for name in SHARED}


@case(AREA, "a read-only config of the broker is refused")
def read_only(run: Run) -> object:
    name = broker_id(run)
    change = {"num.partitions": "2", "default.replication.factor": "2"}
    answer = attempt(run, "alter_configs", kind="broker", name=name, set=change, delete=[])
    expect(answer, "INVALID_REQUEST")
    return answer


@case(AREA, "a dynamic config of the broker is set and deleted")
def dynamic(run: Run) -> object:
    name = broker_id(run)
    config = "log.cleaner.backoff.ms"

    def observe() -> str:
        return str(run.stage.call("describe_configs", kind="broker", name=name)[config]["value"])

    before = observe()
    run.call("alter_configs", kind="broker", name=name, set={config: "14999"}, delete=[])
    run.until(observe, lambda seen: seen == "14999")
    run.call("alter_configs", kind="broker", name=name, set={}, delete=[config])
    run.until(observe, lambda seen: seen == before)
    return before
