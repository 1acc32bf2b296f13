"""Kafka's tools on topics, configs and the partitions' logs."""

import json
import re
import tempfile
from pathlib import Path

from compat_tests.matrix.case import Run, case, expect
from compat_tests.matrix.ecosystem.kafka_clients import TOOLS
from compat_tests.matrix.ecosystem.tool_runs import AREA, produce, refusal, say

CONFIGS = "kafka.admin.ConfigCommand"


@case(AREA, "kafka-topics", clients=[TOOLS])
def topics(run: Run) -> object:
    """Create, describe, alter, list and delete; and what is refused."""
    topic = run.topic()
    wanted = ("--topic", topic, "--partitions", "2", "--replication-factor", "1")
    created = say(run, "TopicCommand", "--create", *wanted, "--config", "max.message.bytes=5000")
    expect(created, [f"Created topic {topic}."])
    described = say(run, "TopicCommand", "--describe", "--topic", topic)
    answers: list[object] = [created, [re.sub(r"Configs: \S*", _settled, line) for line in described]]
    answers.append(say(run, "TopicCommand", "--alter", "--topic", topic, "--partitions", "3"))
    listed = say(run, "TopicCommand", "--list", "--exclude-internal")
    answers.append([line for line in listed if line == topic])
    answers.append(refusal(run, "TopicCommand", "--create", *wanted))
    answers.append(refusal(run, "TopicCommand", "--alter", "--topic", topic, "--partitions", "1"))
    answers.append(refusal(run, "TopicCommand", "--describe", "--topic", "no-such"))
    answers.append(say(run, "TopicCommand", "--describe", "--under-replicated-partitions"))
    answers.append(say(run, "TopicCommand", "--describe", "--unavailable-partitions"))
    answers.append(say(run, "TopicCommand", "--delete", "--topic", topic))
    return answers


def _settled(found: "re.Match[str]") -> str:
    """The configs that were set on the topic; a default of the cluster is no part of the case."""
    pairs = found[0].removeprefix("Configs: ").split(",")
    return "Configs: " + ",".join(sorted(pair for pair in pairs if not pair.startswith("min.insync")))


@case(AREA, "kafka-configs", clients=[TOOLS])
def configs(run: Run) -> object:
    """Configs of topics, brokers and groups are set, described and deleted."""
    topic, group = run.create(), run.group()
    answers: list[object] = []
    for kind, name, change in (
        ("topics", topic, "cleanup.policy=[compact,delete],segment.ms=60000"),
        ("brokers", "1", "log.cleaner.threads=2"),
        ("groups", group, "share.auto.offset.reset=earliest,consumer.session.timeout.ms=50000"),
    ):
        entity = ("--entity-type", kind, "--entity-name", name)
        names = [pair.partition("=")[0] for pair in re.split(r",(?![^\[]*\])", change)]
        answers.append(say(run, CONFIGS, *entity, "--alter", "--add-config", change))
        answers.append(_described(run, entity, names, len(names)))
        answers.append(say(run, CONFIGS, *entity, "--alter", "--delete-config", ",".join(names)))
        answers.append(_described(run, entity, names, 0))
    unknown = ("--entity-type", "topics", "--entity-name", topic, "--alter", "--add-config", "no.such=1")
    answers.append(refusal(run, CONFIGS, *unknown))
    return answers


def _described(run: Run, entity: tuple[str, ...], names: list[str], count: int) -> list[str]:
    """What is told of these configs once that many are set: Kafka's broker learns of a change behind its answer."""
    return run.until(
        lambda: sorted(
            line for line in say(run, CONFIGS, *entity, "--describe") if line.partition("=")[0] in names
        ),
        lambda lines: len(lines) == count,
    )


@case(AREA, "kafka-get-offsets", clients=[TOOLS])
def get_offsets(run: Run) -> object:
    """By name, by partitions and by time, each place that an offset can be asked for."""
    topic = run.create(2)
    produce(run, topic, ["a", "b", "c"])
    produce(run, topic, ["d"], 1)
    answers = {
        time: say(run, "GetOffsetShell", "--topic", topic, "--time", time)
        for time in (
            "earliest",
            "latest",
            "max-timestamp",
            "earliest-local",
            "latest-tiered",
            "1700000000001",
        )
    }
    expect(answers["latest"], [f"{topic}:0:3", f"{topic}:1:1"])
    answers["partitions"] = say(run, "GetOffsetShell", "--topic-partitions", f"{topic}:1-")
    return answers


@case(AREA, "kafka-delete-records", clients=[TOOLS])
def delete_records(run: Run) -> object:
    """Records before an offset go; an offset behind the end is refused."""
    topic = run.create(2)
    produce(run, topic, ["a", "b", "c"])
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "offsets.json"
        wanted = [
            {"topic": topic, "partition": 0, "offset": 2},
            {"topic": topic, "partition": 1, "offset": 9},
        ]
        path.write_text(json.dumps({"partitions": wanted, "version": 1}))
        said = say(run, "DeleteRecordsCommand", "--offset-json-file", str(path))
    ours = sorted(line for line in said if topic in line)
    return [re.sub(r"(\w+Exception).*", r"\1", line) for line in ours]


@case(AREA, "kafka-log-dirs", clients=[TOOLS])
def log_dirs(run: Run) -> object:
    """Sizes of partitions in the broker's directory."""
    topic = run.create(2)
    produce(run, topic, ["a", "b", "c"])
    [described] = [
        json.loads(line)
        for line in say(run, "LogDirsCommand", "--describe", "--topic-list", topic)
        if line.startswith("{")
    ]
    [directory] = described["brokers"][0].pop("logDirs")
    directory.pop("logDir")
    directory["partitions"].sort(key=lambda each: str(each["partition"]))
    return [described, directory]


@case(AREA, "kafka-leader-election", clients=[TOOLS])
def leader_election(run: Run) -> object:
    """The preferred leader leads already; a partition that is not there cannot be led."""
    topic = run.create(2)
    asked = ("--election-type", "preferred", "--topic", topic, "--partition", "0")
    answers: list[object] = [say(run, "LeaderElectionCommand", *asked)]
    unknown = ("--election-type", "preferred", "--topic", "no-such", "--partition", "0")
    answers.append(refusal(run, "LeaderElectionCommand", *unknown))
    return answers


@case(AREA, "kafka-reassign-partitions", clients=[TOOLS])
def reassign_partitions(run: Run) -> object:
    """Nothing moves in a cluster of one broker: a plan to stay is carried out, and no move is under way."""
    topic = run.create(2)
    with tempfile.TemporaryDirectory() as directory:
        moved, plan = Path(directory) / "topics.json", Path(directory) / "plan.json"
        moved.write_text(json.dumps({"topics": [{"topic": topic}], "version": 1}))
        generate = ("--topics-to-move-json-file", str(moved), "--broker-list", "1", "--generate")
        answers = [say(run, "reassign.ReassignPartitionsCommand", *generate)]
        stay = [{"topic": topic, "partition": number, "replicas": [1]} for number in range(2)]
        plan.write_text(json.dumps({"version": 1, "partitions": stay}))
        file = ("--reassignment-json-file", str(plan))
        answers.append(say(run, "reassign.ReassignPartitionsCommand", *file, "--execute"))
        answers.append(say(run, "reassign.ReassignPartitionsCommand", *file, "--verify"))
    answers.append(say(run, "reassign.ReassignPartitionsCommand", "--list"))
    return answers
