"""Classic groups and commits, on one broker.

Members are connections of the raw client: how long 50 of them that join at once and send a heartbeat every 100 ms take
to a stable generation, what the heartbeat of a group of one member costs while a thousand of them are there, and
how many offsets are committed in a second, one after the other.
"""

import threading
import time
from collections.abc import Callable

from benchmarks.measures import Figures, Measure
from benchmarks.process_figures import cpu_seconds
from compat_tests.broker_process import BrokerProcess
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import RawMember, commit_request, wait_for_coordinator
from compat_tests.raw_topics import create_topic
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_groups import DescribeGroupsRequest

MEMBERS, GROUPS, ROUNDS_OF_HEARTBEATS, COMMITS = 50, 1000, 5, 5000
HEARTBEAT_SECONDS = 0.1
STABLE = Measure("classic group, 50 members join: stable after", "ms", more_is_better=False)
STABLE_CPU = Measure("classic group, 50 members join: broker CPU", "ms", more_is_better=False)
HEARTBEATS = Measure("1,000 classic groups: heartbeats", "/s", more_is_better=True)
HEARTBEAT_CPU = Measure("1,000 classic groups: broker CPU per heartbeat", "µs", more_is_better=False)
COMMITTED = Measure("commits, one after the other", "/s", more_is_better=True)
COMMIT_CPU = Measure("commits: broker CPU each", "µs", more_is_better=False)


def measure_classic_groups(broker: BrokerProcess) -> Figures:
    with RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t", 1)
        wait_for_coordinator(raw, "warm")
        _until_stable(broker, "warm")
        seconds, cpu_used = _until_stable(broker, "g")
        figures: Figures = {STABLE: seconds * 1000, STABLE_CPU: cpu_used * 1000}

        commit = commit_request("simple", "t", 0, 5)
        wait_for_coordinator(raw, "simple")
        figures[COMMITTED], figures[COMMIT_CPU] = _rate(broker, lambda: raw.send(commit, 9), COMMITS)

        members = [_lone_member(broker, raw, f"group-{number}") for number in range(GROUPS)]

        def beat() -> None:
            for member in members:
                member.heartbeat()

        rate, cpu = _rate(broker, beat, ROUNDS_OF_HEARTBEATS)
        figures[HEARTBEATS], figures[HEARTBEAT_CPU] = rate * GROUPS, cpu / GROUPS
    return figures


def _rate(broker: BrokerProcess, act: Callable[[], object], count: int) -> tuple[float, float]:
    """How often in a second, and the broker's CPU for each, after some to warm up."""
    for _ in range(count // 5):
        act()
    cpu, start = cpu_seconds(broker.pid), time.perf_counter()
    for _ in range(count):
        act()
    seconds = time.perf_counter() - start
    return count / seconds, (cpu_seconds(broker.pid) - cpu) / count * 1e6


def _lone_member(broker: BrokerProcess, raw: RawClient, group_id: str) -> RawMember:
    """All of them share a connection."""
    member = RawMember(broker.bootstrap, group_id, session_timeout_ms=300_000)
    member.close()
    member.raw = raw
    while member.join().error_code != ErrorCode.NONE:
        wait_for_coordinator(raw, group_id)
    member.sync({member.member_id: b""})
    return member


def _until_stable(broker: BrokerProcess, group: str) -> tuple[float, float]:
    """Seconds, and those of the broker's CPU, until the group is stable with all members, each of which has a
    connection and a thread."""
    done = threading.Event()
    members = [RawMember(broker.bootstrap, group) for _ in range(MEMBERS)]

    def live(member: RawMember) -> None:
        while not done.is_set():
            joined = member.join()
            if joined.error_code != ErrorCode.NONE:
                continue
            assignments = {each.member_id: b"part" for each in joined.members}
            error = member.sync(assignments).error_code
            while error == ErrorCode.NONE and not done.wait(HEARTBEAT_SECONDS):
                error = member.heartbeat()

    threads = [threading.Thread(target=live, args=(member,)) for member in members]
    with RawClient.to(broker.bootstrap) as watcher:
        cpu, start = cpu_seconds(broker.pid), time.perf_counter()
        for thread in threads:
            thread.start()
        while True:
            (described,) = watcher.send(DescribeGroupsRequest([group]), 5).groups
            if described.group_state == "Stable" and len(described.members) == MEMBERS:
                break
            done.wait(0.01)  # looking costs the broker time too
        seconds, cpu = time.perf_counter() - start, cpu_seconds(broker.pid) - cpu
    done.set()
    for thread in threads:
        thread.join()
    for member in members:
        member.close()
    return seconds, cpu
