"""Kafka's tools that write and read records: the consoles, the performance tests, and the verifiable clients."""

import json
import re

from compat_tests.matrix.calls import share_from_the_beginning
from compat_tests.matrix.case import Run, case, expect
from compat_tests.matrix.ecosystem.kafka_clients import TOOLS
from compat_tests.matrix.ecosystem.tool_runs import AREA, plain, produce, say

COUNT = 2000


@case(AREA, "kafka-console-producer and -consumer", clients=[TOOLS])
def consoles(run: Run) -> object:
    """Keys, headers, null values and every codec; by partition and in a group."""
    topic, group = run.create(1), run.group()
    parsing = (
        "parse.key=true",
        "parse.headers=true",
        "key.separator=;",
        "headers.delimiter=|",
        "null.marker=NULL",
    )
    options = [word for each in parsing for word in ("--reader-property", each)]
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        lines = f"h1:v1,h2:{codec}|key{number};value {codec}\nh:x|gone{number};NULL\n"
        say(run, "ConsoleProducer", "--topic", topic, "--compression-codec", codec, *options, stdin=lines)
    printing = ("key", "headers", "partition", "offset", "value")
    shown = [word for each in printing for word in ("--formatter-property", f"print.{each}=true")]
    limits = ("--max-messages", "10", "--timeout-ms", "60000")
    by_partition = ("--topic", topic, "--partition", "0", "--offset", "earliest", *limits)
    read = say(run, "consumer.ConsoleConsumer", *by_partition, *shown)
    expect(len(read), 10, "how many were read")
    in_group = ("--topic", topic, "--group", group, "--from-beginning", *limits)
    expect(say(run, "consumer.ConsoleConsumer", *in_group, *shown), read, "what the group read")
    tail = (
        "--topic",
        topic,
        "--partition",
        "0",
        "--offset",
        "7",
        "--max-messages",
        "3",
        "--timeout-ms",
        "60000",
    )
    return {"all": read, "tail": say(run, "consumer.ConsoleConsumer", *tail)}


@case(AREA, "kafka-console-share-consumer", clients=[TOOLS])
def share_console(run: Run) -> object:
    """Everything is delivered to a share group once, and shown with its number of deliveries."""
    topic, group = run.create(1), run.group()
    share_from_the_beginning(run, group)
    produce(run, topic, [f"value {number}" for number in range(20)])
    limits = ("--max-messages", "20", "--timeout-ms", "60000")
    shown = ("--formatter-property", "print.offset=true", "--formatter-property", "print.delivery=true")
    return sorted(
        say(run, "consumer.ConsoleShareConsumer", "--topic", topic, "--group", group, *limits, *shown)
    )


@case(AREA, "kafka-producer-perf-test and kafka-consumer-perf-test", clients=[TOOLS])
def performance(run: Run) -> object:
    """As many as are sent are read."""
    topic = run.create(2)
    settings = ("--command-property", f"bootstrap.servers={run.bootstrap}", "compression.type=zstd")
    sizes = ("--num-records", str(COUNT), "--record-size", "200", "--throughput", "-1")
    sent = say(
        run,
        "ProducerPerformance",
        "--topic",
        topic,
        *sizes,
        "--bootstrap-server",
        "BROKER",
        *settings[:1],
        settings[2],
    )
    expect(any(line.startswith(f"{COUNT} records sent") for line in sent), True, f"{sent}")
    wanted = ("--topic", topic, "--num-records", str(COUNT), "--timeout", "60000", "--group", run.group())
    header, row = say(run, "ConsumerPerformance", *wanted)[-2:]
    columns = dict(zip(re.split(r",\s*", header), re.split(r",\s*", row), strict=False))
    count = int(columns["data.consumed.in.nMsg"])
    expect(count >= COUNT, True, f"the records read: {count}")
    return say(run, "GetOffsetShell", "--topic", topic)[0].rpartition(":")[0]


@case(AREA, "kafka-verifiable-producer", clients=[TOOLS])
def verifiable_producer(run: Run) -> object:
    """Every record is acknowledged, at the offset that it says."""
    topic = run.create(1)
    said = say(run, "VerifiableProducer", "--topic", topic, "--max-messages", "100", "--acks", "-1")
    events = [json.loads(line) for line in said if line.startswith("{")]
    acked = [each for each in events if each["name"] == "producer_send_success"]
    expect([each["offset"] for each in acked], list(range(100)), "the offsets of the acknowledgements")
    [summary] = [each for each in events if each["name"] == "tool_data"]
    return {
        "sent": summary["sent"],
        "acked": summary["acked"],
        "names": sorted({each["name"] for each in events}),
    }


@case(AREA, "kafka-verifiable-consumer", clients=[TOOLS])
def verifiable_consumer(run: Run) -> object:
    """A member of a group, of either protocol, tells of its partitions, records and commits."""
    topic = run.create(2)
    for partition in range(2):
        produce(run, topic, [f"value {number}" for number in range(50)], partition)
    answers = {}
    for protocol in ("classic", "consumer"):
        group = run.group()
        wanted = (
            "--topic",
            topic,
            "--group-id",
            group,
            "--max-messages",
            "100",
            "--reset-policy",
            "earliest",
        )
        said = say(run, "VerifiableConsumer", *wanted, "--group-protocol", protocol)
        events = [json.loads(line) for line in said if line.startswith("{")]
        read = sum(each["count"] for each in events if each["name"] == "records_consumed")
        assigned = [each["partitions"] for each in events if each["name"] == "partitions_assigned"]
        committed = run.stage.call("committed", group=group, topic=topic, partitions=[0, 1])
        expect(read, 100, "the records read")
        answers[protocol] = [read, sorted(assigned[0], key=str), committed]
    return answers


@case(AREA, "kafka-verifiable-share-consumer", clients=[TOOLS])
def verifiable_share_consumer(run: Run) -> object:
    """A member of a share group tells of its records and acknowledgements."""
    topic, group = run.create(1), run.group()
    produce(run, topic, [f"value {number}" for number in range(50)])
    # The tool sets it, too, and does not wait until the broker goes by it.
    share_from_the_beginning(run, group)
    wanted = (
        "--topic",
        topic,
        "--group-id",
        group,
        "--max-messages",
        "50",
        "--offset-reset-strategy",
        "earliest",
    )
    said = say(run, "VerifiableShareConsumer", *wanted, "--acknowledgement-mode", "sync")
    events = [json.loads(line) for line in said if line.startswith("{")]
    totals = {
        name: sum(each["count"] for each in events if each["name"] == name)
        for name in ("records_consumed", "offsets_acknowledged")
    }
    expect(totals, {"records_consumed": 50, "offsets_acknowledged": 50})
    return plain(run, json.dumps(totals))


@case(AREA, "kafka-e2e-latency", clients=[TOOLS])
def end_to_end_latency(run: Run) -> object:
    """Each record is read before the next is written."""
    topic = run.create(1)
    wanted = ("--topic", topic, "--num-records", "50", "--producer-acks", "all", "--record-size", "100")
    said = say(run, "EndToEndLatency", *wanted)
    return [re.sub(r"[\d.]+", "N", line).split(":")[0] for line in said if "latency" in line.lower()]
