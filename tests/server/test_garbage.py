"""What the collector is kept from: only in a process that is the broker's own."""

import gc

import pytest

from compat_tests.raw_client import ConnectionClosed, RawClient
from compat_tests.raw_groups import wait_for_coordinator
from compat_tests.raw_topics import create_topic, fetch_records, produce
from compat_tests.raw_transactions import RawProducer
from ottla.server import exchange, garbage
from ottla.server.turns import QUICK_ELEMENTS
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest
from tests.server.bad_frames import request
from tests.server.circles import garbage_in_circles
from tests.server.random_requests import RandomRequests
from tests.server.test_random_requests import NAMES, SERVED, Client, is_unanswered, topic_ids


def test_the_process_of_somebody_else_is_left_alone() -> None:
    """A broker inside a test must not set aside what the test has made."""
    before = gc.get_freeze_count()
    garbage.set_aside()
    assert gc.get_freeze_count() == before


def test_what_a_broker_has_made_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything there is, once the start is over and whenever much has been made."""
    monkeypatch.setattr(garbage, "_is_own_process", False)
    thresholds = gc.get_threshold()
    try:
        garbage.begin_collecting()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
        made: list[list[object]] = [[] for _ in range(100)]
        before = gc.get_freeze_count()
        garbage.set_aside()
        assert gc.get_freeze_count() >= before + len(made)
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def test_the_old_are_looked_through_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is made: that takes as long as there is much. When asked, garbage in circles is found."""
    monkeypatch.setattr(garbage, "_is_own_process", False)
    thresholds = gc.get_threshold()
    try:
        garbage.begin_collecting()
        before = gc.get_stats()[2]["collections"]
        circle: list[object] = []
        circle.append(circle)
        gc.collect(1)
        assert any(each is circle for each in gc.get_objects(generation=2))
        del circle
        made = [[number] for number in range(500_000)]
        assert gc.get_stats()[2]["collections"] == before
        del made
        collected = gc.get_stats()[2]["collected"]
        garbage.look_through()
        assert gc.get_stats()[2]["collected"] > collected
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@pytest.mark.parametrize("quick_elements", [QUICK_ELEMENTS, 0])
def test_a_broker_makes_no_garbage_in_circles(monkeypatch: pytest.MonkeyPatch, quick_elements: int) -> None:
    """Whatever its clients do, and however they leave: what is not found while it is young stays for long."""
    monkeypatch.setattr(exchange, "QUICK_ELEMENTS", quick_elements)
    gc.collect()
    with Broker() as broker:
        with RawClient.to(broker.bootstrap) as raw:
            create_topic(raw, "t")
        with garbage_in_circles() as names:
            _come_and_go(broker)
    assert names == set()


@pytest.mark.parametrize("quick_elements", [QUICK_ELEMENTS, 0])
def test_no_request_makes_garbage_in_circles(monkeypatch: pytest.MonkeyPatch, quick_elements: int) -> None:
    """Nor when it is refused, whether in the loop or by a worker thread."""
    monkeypatch.setattr(exchange, "QUICK_ELEMENTS", quick_elements)
    with Broker() as broker:
        client = Client(broker)
        found = {}
        for registration in SERVED:
            version = registration.max_version
            requests = RandomRequests(registration.api_key, NAMES, topic_ids(client))
            drawn = [requests.draw(registration.request_type, version) for _ in range(20)]
            frames = [request(message, version) for message in drawn if not is_unanswered(message)]
            for frame in frames:
                client.ask(frame)  # what the first of its kind needs is made
            with garbage_in_circles() as names:
                for frame in frames:
                    client.ask(frame)
                    client.ask(frame[:-1] + b"\xff")
            if names:
                found[registration.api_key.name] = names
        client.close()
    assert found == {}


def _come_and_go(broker: Broker) -> None:
    """Clients that are served, that send what is no request, and that leave while they wait or are answered."""
    for _ in range(3):
        with RawClient.to(broker.bootstrap) as raw:
            produce(raw, "t", [1])
            fetch_records(raw, "t")
            wait_for_coordinator(raw, "group")
            producer = RawProducer(raw, "producer")
            assert producer.init() == ErrorCode.NONE
            for committed in (True, False):
                assert producer.add("t", 0) == ErrorCode.NONE
                assert producer.produce("t", 0, b"in a transaction") == ErrorCode.NONE
                assert producer.end(committed) == ErrorCode.NONE
        with RawClient.to(broker.bootstrap) as raw:
            raw.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
            with pytest.raises(ConnectionClosed):
                raw.receive_frame()
        with RawClient.to(broker.bootstrap) as raw:
            raw.send_without_answer(MetadataRequest(topics=None), 12)
            wanted = [FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=1000)]
            topics = [FetchTopic(topic="t", partitions=wanted)]
            raw.send_without_answer(FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=topics), 11)
        with RawClient.to(broker.bootstrap) as raw:
            raw.send_frame(b"\0\x03\0\x0c" + bytes(3))
            with pytest.raises(ConnectionClosed):
                raw.receive_frame()
