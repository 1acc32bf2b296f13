"""Kafka's own DumpLogSegments reads every file that Ottla wrote under load, and finds nothing wrong.

It checks each batch and record (deep iteration), each offset index and time index entry against the log, the
producer snapshots, and decodes the records of the cluster metadata log.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from compat_tests.clients import CLIENTS, Message
from compat_tests.kafka.tools import run_tool
from compat_tests.ottla_process import OttlaProcess

DUMP = "org.apache.kafka.tools.DumpLogSegments"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# Small segments and a dense index: many files and many index entries from little data.
TOPIC_CONFIGS = {"segment.bytes": "1048576", "index.interval.bytes": "512", "retention.ms": "-1"}


@pytest.fixture(scope="module")
def written() -> Iterator[Path]:
    """A data directory after real clients wrote to it with every codec and Ottla stopped."""
    with OttlaProcess() as ottla:
        admin = KafkaAdminClient(bootstrap_servers=ottla.bootstrap)
        admin.create_topics({"load": {"num_partitions": 2, "configs": TOPIC_CONFIGS}}, wait_for_metadata=True)
        admin.create_topics(["short-lived"])
        admin.create_partitions({"load": 3})
        admin.delete_topics(["short-lived"])
        admin.close()
        bytes_of = random.Random(4)  # incompressible, so that each codec fills segments
        for number, client in enumerate(CLIENTS):
            for codec in CODECS:
                messages = [
                    Message(b"key-%d" % n, bytes_of.randbytes(400), (("h", b"x"),), partition=number)
                    for n in range(1500)
                ]
                client.produce(ottla.bootstrap, "load", messages, codec=codec, idempotent=codec == "lz4")
        assert ottla.stop() == 0
        yield ottla.data_dir


def dump(*arguments: str) -> str:
    """What the tool prints; whatever it finds wrong goes to standard error."""
    done = run_tool(DUMP, *arguments, timeout_seconds=120)
    # It takes the first record of every later segment for a gap after offset -1, in Kafka's own files too.
    first_records = r"Non-consecutive offsets in \S+/0*(\d+)\.log\n  -1 is followed by \1\n"
    complaints = re.sub(first_records, "", done.stderr)
    # A newer Java warns of what the libraries below Kafka do.
    complaints = re.sub(r"^(WARNING: .*)?\n", "", complaints, flags=re.MULTILINE)
    assert (done.returncode, complaints) == (0, "")
    assert "invalid bytes at the end" not in done.stdout
    return done.stdout


def test_segments_and_indexes(written: Path) -> None:
    """Every record of every segment is valid, and every index entry points at what it promises."""
    suffixes = (".log", ".index", ".timeindex")
    files = [path for path in sorted(written.glob("load-*/*")) if path.suffix in suffixes]
    segments = [path for path in files if path.suffix == ".log"]
    assert len(segments) > 6, "the load must roll segments"
    printed = dump("--deep-iteration", "--files", ",".join(map(str, files)))
    assert printed.count("isvalid: true") == printed.count("isvalid: ") > 20
    offsets = re.findall(r"^\| offset: (\d+) ", printed, re.MULTILINE)
    assert len(offsets) == 3 * len(CODECS) * 1500


def test_index_sanity(written: Path) -> None:
    """The indexes pass the check that Kafka makes when it starts after a crash."""
    indexes = sorted(written.glob("load-*/*.index")) + sorted(written.glob("load-*/*.timeindex"))
    printed = dump("--index-sanity-check", "--files", ",".join(map(str, indexes)))
    assert printed.count("passed sanity check.") + printed.count("is empty.") == len(indexes)
    assert printed.count("is empty.") < len(indexes) / 2


def test_producer_snapshots(written: Path) -> None:
    """Snapshots of the idempotent producers are readable and name them."""
    snapshots = sorted(written.glob("load-*/*.snapshot"))
    assert snapshots
    printed = dump("--files", ",".join(map(str, snapshots)))
    assert re.search(r"producerId: \d+ producerEpoch: 0 .*lastSequence: 1499", printed)


def test_cluster_metadata(written: Path) -> None:
    """The metadata log decodes into KRaft records that tell the story of the topics."""
    log = written / "__cluster_metadata-0" / "00000000000000000000.log"
    printed = dump("--cluster-metadata-decoder", "--files", str(log))
    assert "Could not decode" not in printed
    assert '"type":"TOPIC_RECORD","version":0,"data":{"name":"load"' in printed
    assert printed.count('"type":"PARTITION_RECORD"') == 4
    assert printed.count('"type":"REMOVE_TOPIC_RECORD"') == 1
    assert '"type":"REGISTER_BROKER_RECORD"' in printed
    assert '"name":"metadata.version","featureLevel":30' in printed
    assert '"name":"segment.bytes","value":"1048576"' in printed
