"""kcat, the command-line client, as people type it: list, produce, consume."""

import json
import shutil
import subprocess

import pytest

from compat_tests.broker_process import BrokerProcess
from compat_tests.conftest import NewTopic

KCAT = shutil.which("kcat") or shutil.which("kafkacat")
pytestmark = pytest.mark.skipif(
    KCAT is None, reason="kcat is not installed (Debian and Ubuntu: apt install kcat)"
)


def kcat(bootstrap: str, *arguments: str, stdin: str = "") -> str:
    """Run kcat; what it printed."""
    command = [str(KCAT), "-b", bootstrap, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_list(bootstrap: str, broker: BrokerProcess, new_topic: NewTopic) -> None:
    """`kcat -L` shows broker, controller and partitions."""
    topic = new_topic(partitions=2)
    [line] = [line for line in kcat(bootstrap, "-L", "-t", topic).splitlines() if "controller" in line]
    listed = json.loads(kcat(bootstrap, "-L", "-J", "-t", topic))
    [node] = listed["brokers"]
    assert node["name"] == f"127.0.0.1:{broker.port}"
    assert listed["controllerid"] == node["id"]
    assert line.strip() == f"broker {node['id']} at 127.0.0.1:{broker.port} (controller)"
    replicas = {"leader": node["id"], "replicas": [{"id": node["id"]}], "isrs": [{"id": node["id"]}]}
    partitions = sorted(listed["topics"][0]["partitions"], key=lambda partition: partition["partition"])
    assert partitions == [{"partition": 0, **replicas}, {"partition": 1, **replicas}]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_produce_and_consume(bootstrap: str, new_topic: NewTopic, codec: str) -> None:
    """`kcat -P` with keys, headers and a codec; `kcat -C` prints the same."""
    topic = new_topic()
    lines = "".join(f"key{number}:value{number}\n" for number in range(100))
    kcat(
        bootstrap, "-P", "-t", topic, "-p", "0", "-K", ":", "-z", codec, "-H", "a=1", "-H", "b=2", stdin=lines
    )
    printed = kcat(
        bootstrap, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%o %k %s %h\n"
    )
    assert printed.splitlines() == [f"{n} key{n} value{n} a=1,b=2" for n in range(100)]
    assert kcat(bootstrap, "-C", "-t", topic, "-o", "98", "-e", "-q") == "value98\nvalue99\n"
    assert kcat(bootstrap, "-C", "-t", topic, "-o", "-1", "-e", "-q") == "value99\n"
    assert kcat(bootstrap, "-C", "-t", topic, "-o", "5", "-c", "2", "-q") == "value5\nvalue6\n"


def test_null_key_and_value(bootstrap: str, new_topic: NewTopic) -> None:
    """`-Z` makes empty keys and values null, and `-J` shows them as null."""
    topic = new_topic()
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-Z", "-K", ":", stdin="k:\n:v\n")
    printed = kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-e", "-q", "-J").splitlines()
    records = [json.loads(line) for line in printed]
    assert [(record["key"], record["payload"]) for record in records] == [("k", None), (None, "v")]


def test_query_offsets_by_time(bootstrap: str, new_topic: NewTopic) -> None:
    """`kcat -Q` finds the end and the beginning."""
    topic = new_topic()
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", stdin="a\nb\n")
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:-1") == f"{topic} [0] offset 2\n"
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:-2") == f"{topic} [0] offset 0\n"
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:1000") == f"{topic} [0] offset 0\n"


def test_acks_zero_and_big_messages(bootstrap: str, new_topic: NewTopic) -> None:
    """`-X acks=0`, and a message of 900 KB."""
    topic = new_topic()
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-X", "acks=0", stdin="x" * 900_000 + "\n")
    assert kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-c", "1", "-q") == "x" * 900_000 + "\n"
