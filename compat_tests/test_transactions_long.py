"""Copiers, producers and the broker are killed for minutes: only with OTTLA_SLOW=1."""

import random
from collections.abc import Iterator
from contextlib import closing

import pytest

from compat_tests.broker_process import BrokerProcess
from compat_tests.group_load import SETTINGS
from compat_tests.ottla_process import OttlaProcess
from compat_tests.transactional.process import CLIENTS
from compat_tests.transactional_load import Writer
from compat_tests.transactional_run import TransactionRun

KILLS = 15


@pytest.fixture
def run(group_broker: BrokerProcess, topic_name: str) -> Iterator[TransactionRun]:
    """Topics of its own and a history, on a broker that misses a dead member after seconds."""
    with closing(TransactionRun(group_broker.bootstrap, topic_name)) as made:
        yield made


@pytest.mark.parametrize("client", CLIENTS)
def test_copiers_in_a_group_are_killed(run: TransactionRun, client: str) -> None:
    """Two copiers with ids of their own share the source as a group; one of them is killed, fifteen times."""
    chance = random.Random(client)
    run.watch()
    copiers = [run.keep_copying(client, "subscribe", f"{run.target}-{number}") for number in range(2)]
    for number in range(KILLS):
        run.fill(300, first=number * 300)
        (run.wait_for_tries if number % 2 else run.wait_for_commits)(chance.randint(1, 5))
        chance.choice(copiers).kill_current()
    run.wait_until_copied()
    for copier in copiers:
        copier.stop()
    run.finish(is_copied=True)


def test_one_copier_after_the_other(run: TransactionRun) -> None:
    """All libraries in turn with the same id, each of which is killed amid its work."""
    chance = random.Random(1)
    run.watch()
    run.fill(3000)
    for _ in range(3):
        for client in CLIENTS:
            copier = run.copier(client)
            (run.wait_for_tries if chance.random() < 0.5 else run.wait_for_commits)(chance.randint(1, 10))
            copier.kill()
    last = run.copier("java-4.3")
    run.wait_until_copied()
    last.leave()
    run.finish(is_copied=True)


@pytest.mark.parametrize("client", ["kafka_python", "aiokafka_library", "java-3.9", "java-4.3"])
def test_broker_is_killed(client: str) -> None:
    """The broker is stopped or killed eight times under a copier and producers that commit and abort.

    Only Ottla: of Kafka 4.3.0 the checker has seen a record come back that a producer of transactions V1 had aborted,
    and was told so, a moment before a graceful stop.
    """
    with OttlaProcess(properties=SETTINGS) as ottla, closing(TransactionRun(ottla.bootstrap, "t")) as run:
        run.watch()
        copier = run.keep_copying(client)
        writers = [Writer(run, library, seed) for seed, library in enumerate(("confluent", client))]
        for number in range(8):
            run.fill(600, first=number * 600)
            run.wait_for_commits(5)
            (ottla.kill if number % 2 else ottla.stop)()
            ottla.start()
        run.wait_until_copied()
        copier.stop()
        for writer in writers:
            writer.stop()
        run.finish(is_copied=True)
