"""What is served is known by name before any of its code is read."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.server import coordinated
from ottla.server.registry import Registration, load_registry
from ottla.wire.api_keys import ApiKey

SERVED = list(load_registry().values())


@pytest.mark.parametrize("registration", SERVED, ids=lambda each: each.api_key.name)
def test_a_handler_serves_the_versions_that_are_advertised(registration: Registration) -> None:
    """The table of Kafka's versions and the request class that is decoded agree."""
    request_type = registration.request_type
    assert request_type.API_KEY is registration.api_key
    assert (registration.min_version, registration.max_version) == (
        request_type.MIN_VERSION,
        request_type.MAX_VERSION,
    )


def test_only_produce_is_advertised_below_what_is_served() -> None:
    """Old librdkafka needs a Produce from 0 on; nothing else is told that is not so."""
    wider = [each.api_key for each in SERVED if each.advertised_min != each.min_version]
    assert wider == [ApiKey.PRODUCE]


def test_an_unknown_attribute_is_no_reason_to_load() -> None:
    with pytest.raises(AttributeError):
        _ = SERVED[0].nothing  # type: ignore[attr-defined]


def test_the_first_ack_needs_no_code_of_groups() -> None:
    """Starting the server imports neither coordinators nor the handlers; that is what makes it quick."""
    program = (
        "import sys, ottla.server.server;"
        "print([n for n in sys.modules if 'coordinator.' in n.removeprefix('ottla.') or '.handlers.' in n])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_whoever_asks_a_coordinator_says_so() -> None:
    """Its code is read by a thread before the handler is called, not by the event loop in the middle of it."""
    handlers = Path(__file__).parents[2] / "server" / "handlers"
    for path in handlers.glob("[a-z]*.py"):
        asked = set(re.findall(r"\bbroker\.(groups|share|transactions)\b", path.read_text()))
        known = coordinated.MODULES.get(ApiKey[path.stem.upper()], ())
        for name in asked:
            module = f"ottla.server.{name}.coordinator"
            assert module in known or f"await import_late({name.upper()})" in path.read_text(), path.name


def test_what_is_loaded() -> None:
    """A handler, and the coordinator that it asks."""
    registration = Registration(ApiKey.END_TXN)
    assert not registration.is_loaded
    registration.load()
    assert registration.is_loaded
    assert coordinated.TRANSACTIONS in sys.modules


def test_what_is_prepared() -> None:
    """The codecs of a version, and the handler before that."""
    registration = Registration(ApiKey.END_TXN)
    registration.prepare(3)
    assert registration.is_loaded
    assert registration.ready_versions == {3}
