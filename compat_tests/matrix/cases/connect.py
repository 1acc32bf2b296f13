"""Connecting: who is there, and which topics."""

from typing import Any

from compat_tests.matrix.calls import LOCAL, expect_one_of, metadata
from compat_tests.matrix.case import Run, case, expect

AREA = "connect and metadata"


def address(run: Run) -> tuple[str, int]:
    host, _, port = run.bootstrap.rpartition(":")
    return host, int(port)


def partitions_of(found: dict[str, Any], topic: str) -> list[dict[str, Any]]:
    return sorted(found["topics"][topic]["partitions"], key=lambda each: each["partition"])


@case(AREA, "says its version")
def version(run: Run) -> object:
    found = run.call("version")
    expect(sorted(found), ["library", "version"])
    return found


@case(AREA, "the brokers", quick=True)
def brokers(run: Run) -> object:
    topic = run.create()
    [broker] = metadata(run, topic)["brokers"]
    host, port = address(run)
    expect((broker["host"], broker["port"]), (host, port), "the broker's own address")
    return broker["id"]


@case(AREA, "the controller is one of the brokers")
def controller(run: Run) -> object:
    found = metadata(run, run.create())
    expect_one_of(found["controller"], [None, -1, found["brokers"][0]["id"]])
    return found["controller"]


@case(AREA, "the cluster has an id")
def cluster_id(run: Run) -> object:
    topic = run.create()
    first, second = (metadata(run, topic)["cluster_id"] for _ in range(2))
    expect(first, second)
    if first is not None:  # some libraries do not tell it
        expect(len(first), 22, "the length of a cluster id")
    return first is None


@case(AREA, "one topic", quick=True)
def one_topic(run: Run) -> object:
    topic = run.create(partitions=3)
    found = metadata(run, topic)
    expect(list(found["topics"]), [topic])
    expect(found["topics"][topic]["error"], None)
    broker = found["brokers"][0]["id"]
    wanted = [{"partition": n, "leader": broker, "replicas": [broker], "isr": [broker]} for n in range(3)]
    expect(partitions_of(found, topic), wanted)
    return partitions_of(found, topic)  # Kafka 3.9 tells them in no order


@case(AREA, "several topics in one request")
def several_topics(run: Run) -> object:
    topics = [run.create(partitions=1 + number) for number in range(3)]
    found = metadata(run, *topics)
    expect(
        {name: len(each["partitions"]) for name, each in found["topics"].items()},
        dict(zip(topics, (1, 2, 3), strict=True)),
    )
    return [each["error"] for each in found["topics"].values()]


@case(AREA, "all topics")
def all_topics(run: Run) -> object:
    topics = {run.create(), run.create(partitions=2)}
    found = run.call("metadata", topics=None)
    expect(topics - set(found["topics"]), set(), "topics that are missing")
    return {name: len(found["topics"][name]["partitions"]) for name in topics}


@case(AREA, "an unknown topic is not there, and stays so", quick=True)
def unknown_topic(run: Run) -> object:
    topic = run.topic()
    seen = []
    for _ in range(2):
        found = metadata(run, topic)["topics"].get(topic, {"error": "absent", "partitions": []})
        expect_one_of(found["error"], ["UNKNOWN_TOPIC_OR_PARTITION", "absent", LOCAL])
        expect(found["partitions"], [])
        seen.append(found["error"])
    expect(topic in run.stage.call("metadata", topics=None)["topics"], False, "the topic was created")
    return seen


@case(AREA, "a topic of sixty partitions")
def many_partitions(run: Run) -> object:
    topic = run.create(partitions=60)
    found = partitions_of(metadata(run, topic), topic)
    expect([each["partition"] for each in found], list(range(60)))
    return sorted({each["leader"] for each in found})


@case(AREA, "describe_cluster")
def describe_cluster(run: Run) -> object:
    found = run.call("describe_cluster")
    expect(len(found["cluster_id"]), 22, "the length of a cluster id")
    expect(found["brokers"], [found["controller"]])
    return [found["controller"], found["brokers"]]


@case(AREA, "the features of the cluster", since="4.3")
def features(run: Run) -> object:
    found: dict[str, Any] = run.call("describe_features")
    served = (
        "metadata.version",
        "eligible.leader.replicas.version",
        "group.version",
        "transaction.version",
        "share.version",
    )
    expect([name for name in served if name not in found], [], "features that are missing")
    return {name: found[name] for name in served}
