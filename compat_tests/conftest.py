"""The brokers under test: one process of each for the whole run, and a topic of its own for every test."""

import importlib.util
import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec

from compat_tests.broker_process import BrokerProcess
from compat_tests.group_load import SETTINGS as GROUP_SETTINGS
from compat_tests.group_load import start_group
from compat_tests.group_run import GroupRun
from compat_tests.kafka.real import RealKafka
from compat_tests.load import Load
from compat_tests.ottla_process import OttlaProcess
from compat_tests.raw_client import RawClient

os.environ.setdefault(
    "OTTLA_NATIVE", "0"
)  # brokers that are started here run in Python alone, see ottla.native

BROKERS: dict[str, type[BrokerProcess]] = {"ottla": OttlaProcess, "kafka": RealKafka}

# Kafka looks for transactions that have timed out every ten seconds.
SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}

# Rounds that take many minutes are for whoever changes what they test.
LONG = ["test_group_clients_long.py", "test_share_kill.py", "test_transactions_long.py"]
# So are most that wait for Spark: `make test-spark` runs them all.
LONG += [
    f"spark/test_{name}.py"
    for name in ("batch_reads", "broker_killed", "changes_under_a_stream", "pipeline", "pipeline_run")
]
collect_ignore = [] if os.environ.get("OTTLA_SLOW", "0") not in ("", "0") else [*LONG]
if importlib.util.find_spec("pyspark") is None:
    collect_ignore.append("spark")

NewTopic = Callable[..., str]
StartGroup = Callable[[str], tuple[GroupRun, Load]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The matrix: how many cases of each file each broker met."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    for result in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(result, []):
            file, _, case = report.nodeid.partition("::")
            found = re.search(rf"\[({'|'.join(BROKERS)})[-\]]", case)
            if file.startswith("compat_tests/") and found:
                title = Path(file).stem.removeprefix("test_").replace("_", " ")
                counts.setdefault(title, {name: Counter() for name in BROKERS})[found[1]][result] += 1
    if not counts:
        return
    terminalreporter.section("compatibility")
    terminalreporter.write_line(f"{'cases that pass':32}" + "".join(f"{name:>12}" for name in BROKERS))
    for title, brokers in sorted(counts.items()):
        cells = [f"{brokers[name]['passed']} of {brokers[name].total()}" for name in BROKERS]
        terminalreporter.write_line(f"{title:32}" + "".join(f"{cell:>12}" for cell in cells))


@pytest.fixture(scope="session", params=list(BROKERS))
def broker(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A running broker; every case that asks for it runs against Ottla and against Apache Kafka."""
    with BROKERS[request.param](properties=SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(broker: BrokerProcess) -> str:
    """The address of the broker under test."""
    return broker.bootstrap


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    """An admin client that stays connected."""
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as client:
        yield client


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses, for a topic that does not exist yet."""
    words = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.originalname).strip("-")
    return f"{words}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def new_topic(topic_name: str, admin: KafkaAdminClient) -> NewTopic:
    """Makes a topic for this test: `new_topic(partitions=3, **{"max.message.bytes": "2000"})`."""

    def create(partitions: int = 1, **configs: str) -> str:
        # Fixed timestamps of the cases lie in the past; retention must not take them away.
        settings = {"retention.ms": "-1", **configs}
        wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": settings}
        admin.create_topics({topic_name: wanted}, wait_for_metadata=True)
        # Kafka names a leader a moment before it leads; this asks again until it does.
        latest = {TopicPartition(topic_name, number): OffsetSpec.LATEST for number in range(partitions)}
        admin.list_partition_offsets(latest)
        return topic_name

    return create


@pytest.fixture
def raw(bootstrap: str) -> Iterator[RawClient]:
    """A connection that sends single requests in any version."""
    with RawClient.to(bootstrap) as client:
        yield client


@pytest.fixture(scope="module", params=list(BROKERS))
def group_broker(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A broker whose groups miss a dead member after seconds; it may be restarted."""
    with BROKERS[request.param](properties=GROUP_SETTINGS) as running:
        yield running


@pytest.fixture
def start(group_broker: BrokerProcess, topic_name: str) -> Iterator[StartGroup]:
    """Makes a group with an assignor on a topic of its own, and a load: `group, load = start("range")`."""
    with ExitStack() as groups:

        def make(assignor: str) -> tuple[GroupRun, Load]:
            group, load = start_group(group_broker.bootstrap, topic_name, assignor)
            groups.callback(group.close)
            return group, load

        yield make
