"""A broker for the handlers' tests, one for each module, and a connection to it."""

from collections.abc import Iterator

import pytest

from compat_tests.raw_client import RawClient
from ottla.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A running broker."""
    with Broker() as running:
        yield running


@pytest.fixture
def raw(broker: Broker) -> Iterator[RawClient]:
    """A connection to it."""
    with RawClient.to(broker.bootstrap) as client:
        yield client
