"""`ottla log verify` on the data directories of both brokers, beside the running broker and after its stop."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient

from compat_tests.broker_process import BrokerProcess
from compat_tests.clients import CLIENTS, Message
from compat_tests.conftest import BROKERS
from compat_tests.kafka.real import RealKafka

TOPIC_CONFIGS = {"segment.bytes": "1048576", "index.interval.bytes": "512", "retention.ms": "-1"}


def verify(path: Path) -> tuple[int, str]:
    """Exit code and findings."""
    command = [sys.executable, "-m", "ottla", "log", "verify", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout


def write_transactions(bootstrap: str) -> None:
    """Some are committed, some aborted, and one is left open for a while."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer"})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for each in range(10):
            producer.produce("load", b"value %d" % each, partition=0)
        producer.flush(30)
        if number % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


@pytest.fixture(scope="module", params=list(BROKERS))
def loaded(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A running broker to which real clients wrote with every codec."""
    with BROKERS[request.param]() as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics({"load": {"num_partitions": 2, "configs": TOPIC_CONFIGS}}, wait_for_metadata=True)
        admin.create_topics({"small": {"num_partitions": 1, "configs": {"cleanup.policy": "compact"}}})
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            for number, client in enumerate(CLIENTS[:2]):
                messages = [Message(b"key-%d" % n, b"%d" % n * 40, (), partition=number) for n in range(800)]
                client.produce(broker.bootstrap, "load", messages, codec=codec, idempotent=codec == "lz4")
        if isinstance(broker, RealKafka):
            write_transactions(broker.bootstrap)
        admin.delete_topics(["small"])
        admin.close()
        yield broker


def test_only_damage_is_found(loaded: BrokerProcess) -> None:
    """Nothing beside the running broker nor after it has stopped; then one flipped bit."""
    assert verify(loaded.data_dir) == (0, "")
    loaded.stop()
    _, found = verify(loaded.data_dir)
    # A deleted topic may still wait for the removal of its files.
    assert [line for line in found.splitlines() if "waits for its removal" not in line] == []
    assert verify(loaded.data_dir / "load-0") == (0, "")
    path = min((loaded.data_dir / "load-1").glob("*.log"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    code, found = verify(loaded.data_dir / "load-1")
    assert code == 1
    assert str(path) in found
