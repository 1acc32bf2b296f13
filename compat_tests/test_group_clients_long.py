"""Groups of stock clients in every combination, on both brokers: many minutes, so only with OTTLA_SLOW=1."""

import random

import pytest

from compat_tests.broker_process import BrokerProcess
from compat_tests.conftest import StartGroup
from compat_tests.group_load import ASSIGNORS, finish
from compat_tests.group_run import CONSUMER_PROTOCOL


@pytest.mark.parametrize("is_static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize(
    ("client", "assignor"),
    [(client, assignor) for client, assignors in ASSIGNORS.items() for assignor in assignors],
)
def test_each_client_with_each_assignor(
    start: StartGroup, client: str, assignor: str, is_static: bool
) -> None:
    """Three members come one by one; one is killed and comes back, one leaves."""
    group, load = start(assignor)
    names = ["one", "two", "three"] if is_static else [""] * 3
    with load:
        members = []
        for name in names:
            members.append(group.join(client, name))
            group.wait_until_shared()
        group.wait_for_progress()
        members[0].kill()
        if is_static and assignor == CONSUMER_PROTOCOL:
            group.wait_until_shared()  # until its session is over, nobody may take its name
        group.join(client, names[0])
        group.wait_until_shared()
        members[1].leave()
        group.wait_until_shared()
        group.wait_for_progress()
    finish(group, load)


@pytest.mark.parametrize(
    ("client", "assignor"),
    [
        ("kafka_python", "range"),
        ("confluent", "range"),
        ("aiokafka_library", "range"),
        ("java-3.9", "range"),
        ("java-4.3", "cooperative-sticky"),
        ("confluent", CONSUMER_PROTOCOL),
        ("java-4.3", CONSUMER_PROTOCOL),
    ],
)
def test_member_that_sleeps_through_its_session(start: StartGroup, client: str, assignor: str) -> None:
    """Whoever wakes up after its partitions were given away may read on for a moment, but the broker refuses its
    commits, and it finds back into the group."""
    group, load = start(assignor)
    with load:
        sleeper, _ = group.join(client), group.join(client)
        group.wait_until_shared()
        group.wait_for_progress()
        sleeper.suspend()
        group.wait_for_progress()  # of the sleeper's partitions too: they have another owner
        sleeper.resume()
        group.wait_until_shared()
        group.wait_for_progress()
    finish(group, load)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky", CONSUMER_PROTOCOL])
def test_up_to_eight_members_at_random(start: StartGroup, assignor: str, seed: int) -> None:
    """Twenty times someone joins, leaves or is killed, often before the group has settled."""
    chance = random.Random(seed)
    clients = [client for client, assignors in ASSIGNORS.items() if assignor in assignors]
    group, load = start(assignor)
    with load:
        for _ in range(20):
            size = len(group.members)
            if size < 2 or (size < 8 and chance.random() < 0.6):
                group.join(chance.choice(clients))
            else:
                member = chance.choice(group.members)
                chance.choice([member.leave, member.kill])()
            if chance.random() < 0.5:
                group.wait_until_shared()
            else:
                load.wait_for_acknowledgements(300)
        group.wait_until_shared()
        group.wait_for_progress()
    finish(group, load)


@pytest.mark.parametrize("assignor", ["range", CONSUMER_PROTOCOL])
def test_groups_go_on_after_restarts_of_the_broker(
    start: StartGroup, group_broker: BrokerProcess, assignor: str
) -> None:
    """A graceful stop and kill -9 amid the load: members find the group again with what they committed."""
    group, load = start(assignor)
    with load:
        group.join("confluent")
        group.join("confluent" if assignor == CONSUMER_PROTOCOL else "kafka_python")
        group.wait_until_shared()
        group.wait_for_progress()
        for end in (group_broker.stop, group_broker.kill):
            end()
            group_broker.start()
            group.wait_for_progress()
        group.wait_until_shared()
    finish(group, load)
