"""Kafka's tools on the cluster itself."""

import re

from compat_tests.matrix.case import Run, case, expect
from compat_tests.matrix.ecosystem.group_offsets import set_offsets
from compat_tests.matrix.ecosystem.kafka_clients import TOOLS
from compat_tests.matrix.ecosystem.tool_runs import AREA, produce, refusal, say
from ottla.server.registry import load_registry


@case(AREA, "kafka-broker-api-versions", clients=[TOOLS])
def api_versions(run: Run) -> object:
    """The broker's versions of each request that Ottla serves."""
    lines = say(run, "BrokerApiVersionsCommand")
    found = [re.match(r"(\w+)\((\d+)\): (.*?),?$", line) for line in lines]
    served = {int(key) for key in load_registry()}
    return sorted(f"{each[1]} {each[3]}" for each in found if each and int(each[2]) in served)


@case(AREA, "kafka-cluster", clients=[TOOLS])
def cluster(run: Run) -> object:
    """The id of the cluster, and where its brokers are."""
    [said] = say(run, "ClusterTool", "cluster-id", "--bootstrap-server", "BROKER")
    expect(bool(re.fullmatch(r"Cluster ID: [\w-]{22}", said)), True, said)
    return say(run, "ClusterTool", "list-endpoints", "--bootstrap-server", "BROKER")


@case(AREA, "kafka-features", clients=[TOOLS])
def features(run: Run) -> object:
    """The features of the cluster, with their levels; known.py says why one is left out."""
    lines = say(run, "FeatureCommand", "--bootstrap-server", "BROKER", "describe")
    return [re.sub(r"Epoch: \d+", "Epoch: N", line) for line in lines if "streams.version" not in line]


@case(AREA, "kafka-metadata-quorum", clients=[TOOLS])
def quorum(run: Run) -> object:
    """One voter, which leads and lags behind nobody."""
    status = say(run, "MetadataQuorumCommand", "--bootstrap-server", "BROKER", "describe", "--status")
    replication = say(
        run, "MetadataQuorumCommand", "--bootstrap-server", "BROKER", "describe", "--replication"
    )
    shown = [line for line in status if re.match(r"LeaderId|MaxFollowerLag:|CurrentObservers", line)]
    return [shown, [re.sub(r"\d{2,}|ID\b", "N", line.split()[0]) for line in replication]]


@case(AREA, "kafka-acls", clients=[TOOLS])
def security(run: Run) -> object:
    """Without an authorizer there are none."""
    return refusal(run, "AclCommand", "--list")


@case(AREA, "kafka-client-metrics", clients=[TOOLS])
def client_metrics(run: Run) -> object:
    """Nobody subscribed to metrics of clients."""
    return say(run, "ClientMetricsCommand", "--list")


@case(AREA, "kafka-streams-application-reset", clients=[TOOLS])
def streams_reset(run: Run) -> object:
    """The offsets of an application go back to the beginning, and its topics go."""
    topic, application = run.create(1), run.name("application")
    internal = f"{application}-store-changelog"
    made = {"name": internal, "partitions": 1, "replication": 1, "configs": {}}
    run.stage.call("create_topics", topics=[made], validate_only=False)
    produce(run, topic, [f"value {number}" for number in range(10)])
    set_offsets(run, run.stage, application, topic, {0: 7})
    said = say(run, "StreamsResetter", "--application-id", application, "--input-topics", topic, "--force")
    left = run.stage.call("metadata", topics=[internal])["topics"][internal]["error"]
    return [sorted(said), left, run.stage.call("committed", group=application, topic=topic, partitions=[0])]
