"""The client that waits for a broker to start: it is there before the process is, and knocks every millisecond.

What it sends is made before, and what it needs to read the answers too, so that hardly any of the time that is
measured is its own: no library is loaded and none backs off while a broker starts. It connects, asks for the metadata
of a topic that does not exist, which makes both brokers create it, and sends a record with acks=all to it; where a
broker is not ready for one of these, it is asked again a millisecond later.
"""

import socket
import struct
import threading
import time
from typing import Any

from benchmarks.process_figures import cpu_seconds
from compat_tests.broker_process import BrokerProcess
from compat_tests.raw_client import response_type
from ottla.wire.headers import RequestHeader, decode_response_header, encode_request_header
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.wire.records import Record, build_batch
from ottla.wire.schema import decode, encode

TOPIC = "first"
METADATA_VERSION, PRODUCE_VERSION = 9, 9
PATIENCE_SECONDS = 120
_PAUSE_SECONDS = 0.001
_PRODUCE_TIMEOUT_MS = 30_000


class FirstAcknowledgement(threading.Thread):
    """Begun before the broker is; `seconds` and `broker_cpu_seconds` are there after `wait`."""

    def __init__(self, broker: BrokerProcess) -> None:
        super().__init__(name="first-acknowledgement", daemon=True)
        self._broker = broker
        self._metadata = _frame(
            MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=True),
            METADATA_VERSION,
        )
        batch = build_batch([Record(0, time.time_ns() // 1_000_000, None, b"x" * 100)])
        partition = PartitionProduceData(index=0, records=batch)
        topic = TopicProduceData(name=TOPIC, partition_data=[partition])
        self._produce = _frame(
            ProduceRequest(acks=-1, timeout_ms=_PRODUCE_TIMEOUT_MS, topic_data=[topic]), PRODUCE_VERSION
        )
        _rehearse()
        self._ended = False
        self._acknowledged_at = 0.0
        self.broker_cpu_seconds = 0.0

    @property
    def seconds(self) -> float:
        """From the start of the process to the acknowledgement."""
        return self._acknowledged_at - self._broker.spawned_at

    def wait(self) -> None:
        """Until the acknowledgement is there."""
        self.join(PATIENCE_SECONDS)
        self.end()
        if not self._acknowledged_at:
            raise RuntimeError("the broker acknowledged nothing")

    def end(self) -> None:
        """Knock no more."""
        self._ended = True

    def run(self) -> None:
        """Try until it is acknowledged."""
        while not self._ended:
            try:
                with socket.create_connection(("127.0.0.1", self._broker.port), PATIENCE_SECONDS) as sock:
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    while not self._ended and not self._is_acknowledged(sock):
                        time.sleep(_PAUSE_SECONDS)
                    return
            except OSError:  # nobody there yet, or not for long
                time.sleep(_PAUSE_SECONDS)

    def _is_acknowledged(self, sock: socket.socket) -> bool:
        metadata = _ask(sock, self._metadata, MetadataRequest, METADATA_VERSION)
        [topic] = metadata.topics
        if topic.error_code or any(each.error_code for each in topic.partitions) or not topic.partitions:
            return False
        produced = _ask(sock, self._produce, ProduceRequest, PRODUCE_VERSION)
        if produced.responses[0].partition_responses[0].error_code:
            return False
        self._acknowledged_at = time.perf_counter()
        self.broker_cpu_seconds = cpu_seconds(self._broker.pid, with_children=True)
        return True


def _frame(request: Any, version: int) -> bytes:
    body = encode_request_header(RequestHeader(request.API_KEY, version, 1, TOPIC)) + encode(request, version)
    return struct.pack(">i", len(body)) + body


def _ask(sock: socket.socket, frame: bytes, request_type: type[Any], version: int) -> Any:
    sock.sendall(frame)
    size = struct.unpack(">i", _receive(sock, 4))[0]
    answer = memoryview(_receive(sock, size))
    _, position = decode_response_header(request_type.API_KEY, version, answer)
    return decode(response_type(request_type), version, answer[position:])


def _receive(sock: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = sock.recv(size - len(received))
        if not piece:
            raise ConnectionError("the broker closed the connection")
        received += piece
    return received


def _rehearse() -> None:
    """Read answers once: what reads them is made at its first use."""
    partition = MetadataResponsePartition(replica_nodes=[1], isr_nodes=[1])
    metadata = MetadataResponse(topics=[MetadataResponseTopic(name=TOPIC, partitions=[partition])])
    decode(MetadataResponse, METADATA_VERSION, encode(metadata, METADATA_VERSION))
    topic = TopicProduceResponse(name=TOPIC, partition_responses=[PartitionProduceResponse()])
    produced = ProduceResponse(responses=[topic])
    decode(ProduceResponse, PRODUCE_VERSION, encode(produced, PRODUCE_VERSION))
