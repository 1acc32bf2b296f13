"""Stock clients in groups under load: members join, leave, die and come back, and so does the broker.

The file beside this one has the long rounds.
"""

from contextlib import closing

import pytest

from compat_tests.conftest import StartGroup
from compat_tests.group_load import ASSIGNORS, SETTINGS, finish, start_group
from compat_tests.group_run import CONSUMER_PROTOCOL, Commit, Read, gaps, read_after_commit
from compat_tests.ottla_process import OttlaProcess


def test_all_clients_in_one_classic_group(start: StartGroup) -> None:
    """Five libraries share by range; one leaves, one is killed."""
    group, load = start("range")
    with load:
        first, second, *_ = (group.join(client) for client in ASSIGNORS)
        group.wait_until_shared()
        group.wait_for_progress()
        first.leave()
        group.wait_until_shared()
        second.kill()
        group.wait_until_shared()
        group.wait_for_progress()
    finish(group, load)


def test_consumer_group_with_members_of_both_protocols(start: StartGroup) -> None:
    """Members of KIP-848 and classic ones in one group, in the midst of a migration; one is killed, one leaves."""
    group, load = start(CONSUMER_PROTOCOL)
    with load:
        first = group.join("confluent", assignor="range")
        group.wait_until_shared()
        second = group.join("java-4.3")
        group.join("confluent")
        group.join("confluent")
        group.wait_until_shared()
        group.wait_for_progress()
        first.leave()
        group.wait_until_shared()
        second.kill()
        group.wait_until_shared()
        group.wait_for_progress()
    finish(group, load)


@pytest.mark.parametrize("assignor", ["cooperative-sticky", CONSUMER_PROTOCOL])
def test_members_are_killed_at_once(start: StartGroup, assignor: str) -> None:
    """Two of four die at the same time, and another comes before they are missed."""
    group, load = start(assignor)
    with load:
        first, second, *_ = (group.join("confluent") for _ in range(4))
        group.wait_until_shared()
        group.wait_for_progress()
        first.kill()
        second.kill()
        group.join("confluent")
        group.wait_until_shared()
        group.wait_for_progress()
    finish(group, load)


@pytest.mark.parametrize("assignor", ["cooperative-sticky", CONSUMER_PROTOCOL])
def test_static_member_comes_back(start: StartGroup, assignor: str) -> None:
    """A static member that ends and is started again gets its partitions back, and nobody else is disturbed.

    In a consumer group (KIP-848) it may not just be killed: its name is given away when its session is over.
    """
    group, load = start(assignor)
    with load:
        one, two = group.join("confluent", "one"), group.join("confluent", "two")
        group.wait_until_shared()
        group.wait_for_progress()
        before, others = one.owned, two.owned
        (one.leave if assignor == CONSUMER_PROTOCOL else one.kill)()
        again = group.join("confluent", "one")
        group.wait_until_shared()
        group.wait_for_progress()
        assert (again.owned, two.owned) == (before, others)
    finish(group, load)


@pytest.mark.parametrize("assignor", ["range", CONSUMER_PROTOCOL])
def test_groups_go_on_after_restarts_of_the_broker(assignor: str) -> None:
    """A graceful stop and kill -9 amid the load: members find the group again with what they committed."""
    with OttlaProcess(properties=SETTINGS) as ottla:
        group, load = start_group(ottla.bootstrap, "t", assignor)
        with closing(group):
            with load:
                group.join("confluent")
                group.join("confluent" if assignor == CONSUMER_PROTOCOL else "kafka_python")
                group.wait_until_shared()
                for end in (ottla.stop, ottla.kill):
                    group.wait_for_progress()
                    end()
                    ottla.start()
                group.wait_for_progress()
                group.wait_until_shared()
            finish(group, load)


def test_the_checks_find_what_is_wrong() -> None:
    """A gap, an unread end and a record read after its commit are found; a record that was not committed may come
    again, and a member whose commit is refused may read what it likes."""
    reads = [Read(1, 0, 0, 10), Read(3, 0, 5, 20), Read(5, 0, 25, 30)]
    assert gaps(reads, 31) == [(20, 25), (30, 31)]
    assert read_after_commit(reads, [Commit(2, 0, 5)]) == []
    assert read_after_commit(reads, [Commit(2, 0, 6)]) == [reads[1]]
    reads[1].refused = True
    assert read_after_commit(reads, [Commit(2, 0, 6)]) == []
