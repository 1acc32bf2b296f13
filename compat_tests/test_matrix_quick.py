"""The quick cases of the matrix for the Python clients, which every environment of the tests has.

`make compat` runs all cases of all clients.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from compat_tests.matrix.brokers import start_brokers
from compat_tests.matrix.case import Case, all_cases
from compat_tests.matrix.clients import client_named
from compat_tests.matrix.display import side_by_side
from compat_tests.matrix.judge import FAILED, BothBrokers

CLIENTS = ("kafka-python", "confluent-kafka", "aiokafka")
QUICK = [case for case in all_cases() if case.quick and not case.clients]


@pytest.fixture(scope="module")
def bootstraps() -> Iterator[dict[str, str]]:
    """Both brokers at the same time."""
    with ExitStack() as stack:
        yield start_brokers(stack)


@pytest.fixture(scope="module", params=CLIENTS, ids=lambda name: f"by {name}")
def client(request: pytest.FixtureRequest, bootstraps: dict[str, str]) -> Iterator[BothBrokers]:
    """A client with a driver on each broker."""
    with BothBrokers(client_named(request.param), bootstraps) as both:
        yield both


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.id)
def test_case(client: BothBrokers, case: Case) -> None:
    """Both brokers answer as expected, and alike."""
    found = client.judge(case)
    assert found.status != FAILED, side_by_side(client.client.title, found)
