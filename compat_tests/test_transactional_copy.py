"""Consume, transform, produce: copiers with sendOffsetsToTransaction are killed again and again.

Every record of the source is in the target once. The file beside this one has the long rounds.
"""

from collections.abc import Iterator
from contextlib import closing

import pytest

from compat_tests.transactional.process import CLIENTS
from compat_tests.transactional_run import TransactionRun

RECORDS = 75  # for each copier, so that even a quick one leaves some to the next
KILLS = 2


@pytest.fixture
def run(bootstrap: str, topic_name: str) -> Iterator[TransactionRun]:
    """Topics of its own and a history."""
    with closing(TransactionRun(bootstrap, topic_name)) as made:
        yield made


@pytest.mark.parametrize("client", CLIENTS)
def test_copier_is_killed_again_and_again(run: TransactionRun, client: str) -> None:
    """Amid a transaction and right after one; the next copier takes over its id and what it had committed."""
    run.watch()
    for number in range(KILLS):
        run.fill(RECORDS, first=number * RECORDS)
        copier = run.copier(client)
        if number % 2:
            run.wait_for_commits(2)
        else:
            run.wait_for_tries(2 + number)
        copier.kill()
    last = run.copier(client)
    run.wait_until_copied()
    last.leave()
    run.finish(is_copied=True)
