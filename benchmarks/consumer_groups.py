"""Groups of the consumer protocol (KIP-848), on one broker.

Members are connections of the raw client: how long 50 of them that join at once and send a heartbeat every 100 ms take
to a stable assignment, and what the heartbeat of a group of one member costs while a thousand of them are there.
"""

import threading
import time
from contextlib import ExitStack

from benchmarks.measures import Figures, Measure
from benchmarks.process_figures import cpu_seconds
from compat_tests.broker_process import BrokerProcess
from compat_tests.raw_client import RawClient
from compat_tests.raw_consumer_groups import RawConsumer, describe
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_topics import create_topic
from ottla.wire.errors import ErrorCode

MEMBERS, PARTITIONS, GROUPS = 50, 100, 1000
TOPIC = "subscribed"
HEARTBEAT_SECONDS = 0.1
STABLE = Measure("consumer group, 50 members join: stable after", "ms", more_is_better=False)
STABLE_CPU = Measure("consumer group, 50 members join: broker CPU", "ms", more_is_better=False)
HEARTBEATS = Measure("1,000 consumer groups: heartbeats", "/s", more_is_better=True)
CPU = Measure("1,000 consumer groups: broker CPU per heartbeat", "µs", more_is_better=False)


def measure_consumer_groups(broker: BrokerProcess) -> Figures:
    with RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, TOPIC, PARTITIONS)
        wait_for_coordinator(raw, "consumer-warm")
        _until_stable(broker, "consumer-warm")
        seconds, cpu_used = _until_stable(broker, "consumer-g")
        figures: Figures = {STABLE: seconds * 1000, STABLE_CPU: cpu_used * 1000}
        members = [RawConsumer(raw, f"consumer-{number}", "m", TOPIC) for number in range(GROUPS)]
        for member in members:
            while member.join().error_code != ErrorCode.NONE:
                wait_for_coordinator(raw, member.group_id)
        for member in members:
            member.beat(topic_partitions=None)
        cpu, start = cpu_seconds(broker.pid), time.perf_counter()
        for _ in range(5):
            for member in members:
                member.beat(topic_partitions=None)
        count = 5 * GROUPS
        figures[HEARTBEATS] = count / (time.perf_counter() - start)
        figures[CPU] = (cpu_seconds(broker.pid) - cpu) / count * 1e6
    return figures


def _until_stable(broker: BrokerProcess, group: str) -> tuple[float, float]:
    """Seconds, and those of the broker's CPU, until the group is stable with all members, each of which has a
    connection and a thread."""
    done = threading.Event()
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient.to(broker.bootstrap)) for _ in range(MEMBERS)]
        members = [RawConsumer(raw, group, f"m{number}", TOPIC) for number, raw in enumerate(clients)]

        def live(member: RawConsumer) -> None:
            while member.join().error_code != ErrorCode.NONE and not done.is_set():
                pass
            while not done.wait(HEARTBEAT_SECONDS):
                member.beat()

        threads = [threading.Thread(target=live, args=(member,)) for member in members]
        watcher = stack.enter_context(RawClient.to(broker.bootstrap))
        cpu, start = cpu_seconds(broker.pid), time.perf_counter()
        for thread in threads:
            thread.start()
        while True:
            described = describe(watcher, group)
            if described.group_state == "Stable" and len(described.members) == MEMBERS:
                break
            done.wait(0.01)  # looking costs the broker time too
        seconds, cpu = time.perf_counter() - start, cpu_seconds(broker.pid) - cpu
        done.set()
        for thread in threads:
            thread.join()
    return seconds, cpu
