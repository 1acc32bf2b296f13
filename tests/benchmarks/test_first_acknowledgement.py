"""The client that is there before the broker."""

import pytest

from benchmarks.first_acknowledgement import TOPIC, FirstAcknowledgement
from compat_tests.ottla_process import OttlaProcess
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import fetch_records


def test_it_waits_for_the_broker_and_is_acknowledged() -> None:
    """One record is there, and the time is from the start of the process."""
    broker = OttlaProcess()
    broker.prepare()
    client = FirstAcknowledgement(broker)
    client.start()
    with broker:
        client.wait()
        assert client.seconds > 0
        assert client.broker_cpu_seconds > 0
        with RawClient.to(broker.bootstrap) as raw:
            assert fetch_records(raw, TOPIC).count(b"x" * 100) == 1


def test_without_a_broker_it_can_be_ended() -> None:
    """It says that nothing was acknowledged."""
    broker = OttlaProcess()
    broker.prepare()
    client = FirstAcknowledgement(broker)
    client.start()
    client.end()
    with pytest.raises(RuntimeError, match="nothing"):
        client.wait()
    broker.close()
