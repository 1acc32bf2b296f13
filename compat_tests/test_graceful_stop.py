"""Ctrl-C and SIGTERM: the first stops gracefully, the second at once."""

import json
import signal

import pytest
from kafka import KafkaAdminClient

from compat_tests.clients import Message
from compat_tests.clients.confluent_client import ConfluentClient
from compat_tests.eventually import eventually
from compat_tests.load import Load
from compat_tests.ottla_process import OttlaProcess
from compat_tests.raw_client import RawClient
from ottla.wire.headers import RequestHeader, encode_request_header
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.schema import encode

CLEAN_MARKER = ".kafka_cleanshutdown"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_first_signal_stops_gracefully(number: signal.Signals) -> None:
    """Amid a load it ends with code 0 and a clean marker, and the next start continues where it ended."""
    with OttlaProcess() as ottla:
        admin = KafkaAdminClient(bootstrap_servers=ottla.bootstrap)
        admin.create_topics(["load"], wait_for_metadata=True)
        admin.close()
        with Load(ottla.bootstrap, "load", partitions=1, idempotent=True) as load:
            load.wait_for_acknowledgements(500)
            assert not (ottla.data_dir / CLEAN_MARKER).exists()
            ottla.send_signal(number)
            assert ottla.wait() == 0
            assert "version" in json.loads((ottla.data_dir / CLEAN_MARKER).read_text())
            ottla.start()
            assert not (ottla.data_dir / CLEAN_MARKER).exists()
            load.wait_for_acknowledgements(500)
        stored = ConfluentClient().read(ottla.bootstrap, "load")
        assert {record.value: record.offset for record in stored} == {
            value: offset for (_, value), offset in load.acknowledged.items()
        }
        assert ottla.stop() == 0


def test_second_signal_stops_at_once() -> None:
    """A client that never reads its answer holds up the graceful stop; the second signal does not wait for it."""
    with OttlaProcess() as ottla:
        messages = [Message(None, b"x" * 900_000) for _ in range(30)]
        ConfluentClient().produce(ottla.bootstrap, "big", messages)
        with RawClient.to(ottla.bootstrap) as client:
            everything = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50_000_000)
            topics = [FetchTopic(topic="big", partitions=[everything])]
            request = FetchRequest(max_bytes=50_000_000, min_bytes=1, topics=topics)
            header = encode_request_header(RequestHeader(request.API_KEY, 4, 1, None))
            client.send_frame(header + encode(request, 4))
            ottla.send_signal(signal.SIGTERM)
            eventually(lambda: "stopping" in ottla.log_tail(), True)
            ottla.send_signal(signal.SIGTERM)
            assert ottla.wait(timeout_seconds=5) == 128 + signal.SIGTERM
        assert not (ottla.data_dir / CLEAN_MARKER).exists()
