"""A live broker in this process: pipelining, waiting, listeners, limits, restart and stop."""

import itertools
import shutil
import socket
import struct
import threading
from pathlib import Path

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import ConnectionClosed, RawClient
from compat_tests.raw_topics import create_topic, fetch_records, produce
from ottla.config.broker_config import BrokerConfig
from ottla.config.definition import ConfigError
from ottla.config.listeners import Endpoint
from ottla.log_store.directory import DirectoryInUse
from ottla.server.connection import Connection
from ottla.server.connection_limits import ConnectionLimits
from ottla.server.limits import Limits
from ottla.server.listener import BindError, Listener, bind
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from ottla.wire.headers import RequestHeader, encode_request_header
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.schema import encode

NAMED = ApiVersionsRequest(client_software_name="test", client_software_version="1")


def frame(request: object, version: int, correlation_id: int) -> bytes:
    header = RequestHeader(request.API_KEY, version, correlation_id, None)  # type: ignore[attr-defined]
    body = encode_request_header(header) + encode(request, version)
    return struct.pack(">i", len(body)) + body


def test_many_pipelined_requests_are_answered_in_order() -> None:
    """Different APIs and versions in one burst, more than the buffers hold."""
    with Broker() as broker, socket.create_connection((broker.host, broker.port)) as sock:
        count = 3000
        requests = itertools.cycle(
            [(NAMED, 4), (MetadataRequest(topics=[]), 12), (NAMED, 0), (MetadataRequest(), 1)]
        )
        burst = b"".join(
            frame(request, version, n) for n, (request, version) in zip(range(count), requests, strict=False)
        )
        sender = threading.Thread(target=sock.sendall, args=(burst,))
        sender.start()
        stream = sock.makefile("rb")
        answered = []
        for _ in range(count):
            (size,) = struct.unpack(">i", stream.read(4))
            answered.append(struct.unpack(">i", stream.read(size)[:4])[0])
        sender.join()
        assert answered == list(range(count))


def test_a_waiting_fetch_holds_up_only_its_own_connection() -> None:
    """Requests behind it on the same connection are answered after it, those of others at once."""
    with Broker() as broker, RawClient.to(broker.bootstrap) as raw, RawClient.to(broker.bootstrap) as waiting:
        create_topic(raw, "t")
        wanted = FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
        waiting.send_without_answer(FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[wanted]), 11)
        waiting.send_without_answer(NAMED, 3)
        for _ in range(10):
            raw.send(NAMED, 3)
        produce(raw, "t", [1000])
        first, second = waiting.receive_frame(), waiting.receive_frame()
        assert [struct.unpack(">i", each[:4])[0] for each in (first, second)] == [1, 2]


def test_answers_that_are_ready_do_not_wait_for_one_that_is_not() -> None:
    """A request in front of a waiting Fetch, sent together with it, is answered at once."""
    with Broker() as broker, RawClient.to(broker.bootstrap) as raw, RawClient.to(broker.bootstrap) as waiting:
        create_topic(raw, "t")
        wanted = FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
        fetch = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[wanted])
        waiting.send_bytes(frame(NAMED, 3, 1) + frame(fetch, 11, 2))
        assert struct.unpack(">i", waiting.receive_frame()[:4]) == (1,)
        produce(raw, "t", [1000])
        assert struct.unpack(">i", waiting.receive_frame()[:4]) == (2,)


def test_data_and_topics_survive_a_restart(tmp_path: Path) -> None:
    """The same ids, offsets and bytes; node and cluster keep their names."""
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        topic_id = create_topic(raw, "t", partitions=2, retention_ms="-1")
        produce(raw, "t", [1000, 2000], partition=1)
        before = fetch_records(raw, "t", partition=1)
        cluster = raw.send(MetadataRequest(topics=[]), 12).cluster_id
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        metadata = raw.send(MetadataRequest(topics=None), 12)
        assert [(topic.name, topic.topic_id) for topic in metadata.topics] == [("t", topic_id)]
        assert metadata.cluster_id == cluster
        assert fetch_records(raw, "t", partition=1) == before
        assert produce(raw, "t", [3000], partition=1).base_offset == 2


def test_a_directory_serves_one_broker_at_a_time(tmp_path: Path) -> None:
    """The second one says who has it."""
    with Broker(data=tmp_path), pytest.raises(DirectoryInUse, match="in use"):
        Broker(data=tmp_path).start()


def test_several_listeners_each_tell_their_own_address() -> None:
    """A client learns the address of the listener it came through."""
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://localhost:0",
        "advertised.listeners": "INSIDE://127.0.0.1:0,OUTSIDE://kafka.example.org:19092",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }
    with Broker(settings) as broker:
        inside, outside = broker.endpoints
        told = []
        for endpoint in (inside, outside):
            with RawClient(endpoint.host, endpoint.port) as raw:
                (node,) = raw.send(MetadataRequest(topics=[]), 12).brokers
                told.append((node.host, node.port))
        assert told == [("127.0.0.1", inside.port), ("kafka.example.org", 19092)]


def test_ipv6() -> None:
    """A literal address in brackets works, and is told to clients."""
    with Broker(listeners="PLAINTEXT://[::1]:0") as broker, RawClient.to(broker.bootstrap) as raw:
        (node,) = raw.send(MetadataRequest(topics=[]), 12).brokers
        assert (node.host, node.port) == ("::1", broker.port)


def test_every_interface() -> None:
    """An empty host listens on all of them, IPv4 and IPv6."""
    settings = {"listeners": "PLAINTEXT://:0", "advertised.listeners": "PLAINTEXT://localhost:0"}
    with Broker(settings) as broker:
        for host in ("127.0.0.1", "::1"):
            with RawClient(host, broker.port) as raw:
                assert raw.send(NAMED, 3).error_code == 0


def test_a_taken_port_is_named() -> None:
    """The error says which listener and why."""
    with Broker() as broker, pytest.raises(BindError, match=f"127.0.0.1:{broker.port}"):
        Broker(listeners=f"PLAINTEXT://127.0.0.1:{broker.port}").start()


def nobody_comes(sock: socket.socket, peer: str, host: str, listener_name: str) -> Connection:
    raise AssertionError(f"{peer} came through {listener_name}")


def test_a_port_taken_after_binding_is_named() -> None:
    """Two brokers that start at once may both bind; the second to listen is told as plainly."""
    with socket.socket() as first:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        first.bind(("127.0.0.1", 0))
        endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", first.getsockname()[1])
        with bind(endpoint) as second:
            first.listen()
            limits = Limits.from_config(BrokerConfig.load({}))
            listener = Listener(endpoint, second, limits, ConnectionLimits(limits), nobody_comes)
            with pytest.raises(BindError, match=f"127.0.0.1:{endpoint.port}"):
                listener.listen()


def test_a_data_directory_may_be_named_in_a_roundabout_way(tmp_path: Path) -> None:
    """`..`, a doubled slash or a slash at the end is the same directory."""
    (tmp_path / "here").mkdir()
    with Broker(data=f"{tmp_path}/here/..//data/") as broker:
        assert broker.data == tmp_path / "data"


def test_a_data_directory_may_be_given_as_a_setting(tmp_path: Path) -> None:
    """Kafka's own name for it is not passed over for a temporary directory."""
    with Broker({"log.dirs": str(tmp_path / "data")}) as broker:
        assert broker.data == tmp_path / "data"


def test_a_wrong_setting_is_named() -> None:
    """Unknown names and bad values are refused before anything starts."""
    with pytest.raises(ConfigError, match=r"num\.partitons"):
        Broker({"num.partitons": "3"}).start()
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Broker(num_partitions="many").start()


def is_served(broker: Broker) -> bool:
    with RawClient.to(broker.bootstrap) as raw:
        try:
            return raw.send(NAMED, 3).error_code == 0
        except (ConnectionClosed, ConnectionError):
            return False


def test_connections_per_address_are_limited() -> None:
    """One too many is closed at once; when one leaves, another may come."""
    with Broker({"max.connections.per.ip": "2"}) as broker:
        with RawClient.to(broker.bootstrap) as first, RawClient.to(broker.bootstrap) as second:
            assert first.send(NAMED, 3).error_code == second.send(NAMED, 3).error_code == 0
            with RawClient.to(broker.bootstrap) as third, pytest.raises((ConnectionClosed, ConnectionError)):
                third.send(NAMED, 3)
        eventually(lambda: is_served(broker), True)


def test_idle_connections_are_closed() -> None:
    """connections.max.idle.ms; one that keeps asking stays."""
    with Broker({"connections.max.idle.ms": "1500"}) as broker, RawClient.to(broker.bootstrap) as idle:
        idle.send(NAMED, 3)
        with RawClient.to(broker.bootstrap) as busy:
            asking = threading.Event()
            asking.set()
            asker = threading.Thread(target=ask_while, args=(busy, asking))
            asker.start()
            with pytest.raises(ConnectionClosed):
                idle.receive_frame()
            asking.clear()
            asker.join()
            assert busy.send(NAMED, 3).error_code == 0


def ask_while(raw: RawClient, asking: threading.Event) -> None:
    pause = threading.Event()
    while asking.is_set():
        raw.send(NAMED, 3)
        pause.wait(0.1)


def test_a_client_that_leaves_while_its_fetch_waits_is_let_go() -> None:
    """Its connection does not stay counted until max_wait_ms is over."""
    with Broker({"max.connections.per.ip": "1"}) as broker:
        with RawClient.to(broker.bootstrap) as raw:
            create_topic(raw, "t")
            wanted = FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
            raw.send_without_answer(FetchRequest(max_wait_ms=600_000, min_bytes=1, topics=[wanted]), 11)
        eventually(lambda: is_served(broker), True)


def test_stop_answers_a_waiting_fetch() -> None:
    """Graceful stop does not leave clients without an answer."""
    with Broker() as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t")
        wanted = FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
        raw.send_without_answer(FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[wanted]), 11)
        with RawClient.to(broker.bootstrap) as other:
            other.send(NAMED, 3)
        broker.stop()
        assert len(raw.receive_frame()) > 0


def state_of(raw: RawClient, topic: str) -> int:
    wanted = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    (answered,) = raw.send(ListOffsetsRequest(replica_id=-1, topics=[wanted]), 9).topics
    (response,) = answered.partitions
    return int(response.error_code)


def test_a_partition_that_the_disk_refuses_is_offline_until_the_next_start(tmp_path: Path) -> None:
    """Its topic is there and says why it cannot be used; other topics and the stop do not suffer."""
    in_the_way = tmp_path / "blocked-0"
    topic = CreatableTopic(name="blocked", num_partitions=1, replication_factor=1)
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        in_the_way.write_text("no directory")
        (created,) = raw.send(CreateTopicsRequest(topics=[topic]), 7).topics
        assert created.error_code == ErrorCode.NONE
        assert state_of(raw, "blocked") == ErrorCode.KAFKA_STORAGE_ERROR
        create_topic(raw, "free")
        produce(raw, "free", [1])
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        assert state_of(raw, "blocked") == ErrorCode.KAFKA_STORAGE_ERROR
    in_the_way.unlink()
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        assert state_of(raw, "blocked") == ErrorCode.NONE


def test_an_offline_topic_can_be_deleted(tmp_path: Path) -> None:
    """And is unknown from then on."""
    topic = CreatableTopic(name="blocked", num_partitions=1, replication_factor=1)
    with Broker(data=tmp_path) as broker, RawClient.to(broker.bootstrap) as raw:
        (tmp_path / "blocked-0").write_text("no directory")
        raw.send(CreateTopicsRequest(topics=[topic]), 7)
        (deleted,) = raw.send(DeleteTopicsRequest(topic_names=["blocked"], timeout_ms=10_000), 5).responses
        assert deleted.error_code == ErrorCode.NONE
        assert state_of(raw, "blocked") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_stop_after_the_data_was_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Somebody deletes the directory of a running broker: it says what it could not write, and ends in order."""
    with Broker(data=tmp_path / "data") as broker, RawClient.to(broker.bootstrap) as raw:
        create_topic(raw, "t")
        produce(raw, "t", [1])
        shutil.rmtree(tmp_path / "data")
    assert "log directory is offline" in caplog.text
    assert not (tmp_path / "data").exists()
