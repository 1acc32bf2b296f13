"""A load generator of our own: requests made before the clock runs, over plain sockets, many under way at once.

It costs a small part of what a stock client costs, so that the broker is the limit and not the client. The bytes are
those of a stock client's requests. Every answer is looked at for its error code; nothing else of it is decoded.
One process serves all its connections from one loop.
"""

import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from random import Random
from typing import Any

from benchmarks.measures import percentiles
from benchmarks.process_figures import Stopwatch, Target, resident_mb, timed
from ottla.wire.headers import RequestHeader, encode_request_header
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch
from ottla.wire.schema import encode

PATIENCE_SECONDS = 120
# The last versions without tagged fields and varints: what is looked at stands at a fixed place.
PRODUCE_VERSION, FETCH_VERSION, API_VERSIONS_VERSION = 8, 11, 0
KAFKA_IN_FLIGHT = 5  # of Kafka's own producer
_RECEIVE_BYTES = 1 << 20
_LARGE_FRAME_BYTES = 64 * 1024
_MB = 1 << 20


class RefusedRequest(RuntimeError):
    """The broker answered with an error code."""


class Line:
    """A connection on which a number of requests are always under way, until all are answered."""

    def __init__(
        self, broker: Target, requests: Iterator[bytes], count: int, in_flight: int, at: int
    ) -> None:
        host, _, port = broker.bootstrap.rpartition(":")
        self.sock = socket.create_connection((host, int(port)), PATIENCE_SECONDS)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.received_bytes = 0
        self.answered = 0
        self._requests = requests
        self._count = count
        self._in_flight = in_flight
        self._sent = 0
        self._unsent = memoryview(b"")
        self._head = bytearray()
        self._head_bytes = at + 2
        self._skip = 0

    @property
    def is_done(self) -> bool:
        return self.answered == self._count

    def again(self, requests: Iterator[bytes], count: int) -> None:
        """More requests after the first ones are answered."""
        self._requests = requests
        self._count += count

    def send(self) -> bool:
        """Send what may be under way; whether the socket takes no more."""
        while True:
            if not self._unsent:
                free = min(self._in_flight - (self._sent - self.answered), self._count - self._sent)
                if free <= 0:
                    return False
                self._unsent = memoryview(self._take(free))
            try:
                sent = self.sock.send(self._unsent)
            except BlockingIOError:
                return True
            self._unsent = self._unsent[sent:]

    def _take(self, most: int) -> bytes:
        """A large frame, or as many small ones as may go; they leave by one call."""
        first = next(self._requests)
        self._sent += 1
        if most == 1 or len(first) > _LARGE_FRAME_BYTES:
            return first
        others = list(islice(self._requests, most - 1))
        self._sent += len(others)
        return b"".join((first, *others))

    def receive(self, room: memoryview) -> None:
        """Take what has arrived."""
        received = self.sock.recv_into(room)
        if received == 0:
            raise RefusedRequest("the broker closed the connection")
        self.received_bytes += received
        position = 0
        while position < received:
            if self._skip:
                step = min(self._skip, received - position)
                self._skip -= step
                self.answered += self._skip == 0
            else:
                step = min(self._head_bytes - len(self._head), received - position)
                self._head += room[position : position + step]
                if len(self._head) == self._head_bytes:
                    self._look()
            position += step

    def _look(self) -> None:
        error = int.from_bytes(self._head[-2:], "big", signed=True)
        if error != 0:
            raise RefusedRequest(f"error code {error}")
        self._skip = int.from_bytes(self._head[:4], "big") + 4 - self._head_bytes
        self.answered += self._skip == 0
        self._head.clear()


def exchange(lines: Sequence[Line]) -> None:
    """Send and receive on all connections until everything is answered."""
    room = memoryview(bytearray(_RECEIVE_BYTES))
    by_number = {line.sock.fileno(): line for line in lines}
    left = sum(not line.is_done for line in lines)
    with select.epoll() as poll:
        for number, line in by_number.items():
            is_full = line.send()
            poll.register(number, select.EPOLLIN | (select.EPOLLOUT if is_full else 0))
        while left:
            events = poll.poll(PATIENCE_SECONDS)
            if not events:
                raise TimeoutError("the broker does not answer")
            for number, event in events:
                line = by_number[number]
                if event & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                    line.receive(room)
                is_full = line.send()
                if is_full or event & select.EPOLLOUT:
                    poll.modify(number, select.EPOLLIN | (select.EPOLLOUT if is_full else 0))
                left -= line.is_done


@contextmanager
def closing(*lines: Line) -> Iterator[Sequence[Line]]:
    """Close the connections behind the block."""
    try:
        yield lines
    finally:
        for line in lines:
            line.sock.close()


def frame(request: Any, version: int) -> bytes:
    """A request as it goes over the wire."""
    body = encode_request_header(RequestHeader(request.API_KEY, version, 1, "raw-load")) + encode(
        request, version
    )
    return struct.pack(">i", len(body)) + body


def batch(size: int, records: int) -> bytes:
    """A batch of records of this size, of this moment."""
    now_ms = time.time_ns() // 1_000_000
    value = Random(size).randbytes(size)
    return build_batch([Record(number, now_ms, None, value, ()) for number in range(records)])


def produce_frame(topic: str, partition: int, records: bytes, acks: int) -> bytes:
    data = PartitionProduceData(index=partition, records=records)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return frame(ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics), PRODUCE_VERSION)


def fetch_frame(topic: str, offset: int, max_bytes: int, max_wait_ms: int = 500) -> bytes:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=max_bytes, topics=topics)
    return frame(request, FETCH_VERSION)


def produce_error_at(topic: str) -> int:
    """Where the error code of the partition stands: behind size, correlation id, two counts, the topic and the
    index."""
    return 4 + 4 + 4 + 2 + len(topic) + 4 + 4


def fetch_error_at(topic: str) -> int:
    """The same for Fetch, which has throttle time, an error code and a session id before that."""
    return 4 + 4 + 4 + 2 + 4 + 4 + 2 + len(topic) + 4 + 4


def produce(
    broker: Target,
    topic: str,
    size: int,
    records: int,
    requests: int,
    *,
    connections: int = 1,
    partitions: int = 1,
    in_flight: int = KAFKA_IN_FLIGHT,
    acks: int = -1,
) -> Stopwatch:
    """Requests with one batch each, over some connections to some partitions, each connection to its own in turn."""
    data = batch(size, records)
    frames = [produce_frame(topic, partition, data, acks) for partition in range(partitions)]
    each = max(requests // connections, 1)
    at = produce_error_at(topic)
    lines = [
        Line(broker, cycle(frames[number % partitions :: connections]), each, in_flight, at)
        for number in range(connections)
    ]
    with closing(*lines), timed(broker) as watch:
        exchange(lines)
    watch.result["requests"] = each * connections
    watch.result["bytes"] = each * connections * size * records
    return watch


def serial(broker: Target, topic: str, count: int) -> Stopwatch:
    """One record after the other with acks=all; latencies in milliseconds."""
    data = produce_frame(topic, 0, batch(100, 1), -1)
    line = Line(broker, cycle([data]), 0, 1, produce_error_at(topic))
    line.sock.setblocking(True)
    room = memoryview(bytearray(_RECEIVE_BYTES))
    latencies = []
    with closing(line), timed(broker) as watch:
        for _ in range(count):
            before = time.perf_counter()
            line.again(cycle([data]), 1)
            line.send()
            while not line.is_done:
                line.receive(room)
            latencies.append((time.perf_counter() - before) * 1000)
    watch.result.update(percentiles(latencies))
    return watch


def fetch(
    broker: Target,
    topic: str,
    batch_bytes: int,
    batch_records: int,
    batches: int,
    *,
    per_fetch: int = 1,
    connections: int = 1,
    is_random: bool = False,
    fetches: int = 0,
) -> Stopwatch:
    """Read a partition of so many equal batches from end to end with each connection, or some of them anywhere."""
    places = range(0, batches, per_fetch)
    at = fetch_error_at(topic)
    lines = []
    for number in range(connections):
        chosen: Sequence[int] = (
            Random(number).choices(range(batches), k=fetches) if is_random else places[: fetches or None]
        )
        frames = [fetch_frame(topic, place * batch_records, per_fetch * batch_bytes) for place in chosen]
        lines.append(Line(broker, iter(frames), len(frames), 2, at))
    with closing(*lines), timed(broker) as watch:
        exchange(lines)
    watch.result["bytes"] = sum(line.received_bytes for line in lines)
    watch.result["requests"] = sum(line.answered for line in lines)
    expected = watch.result["requests"] * per_fetch * batch_bytes
    assert watch.result["bytes"] > 0.9 * expected, f"{watch.result['bytes']} bytes instead of {expected}"
    return watch


def fan_out(broker: Target, topic: str, consumers: int, rounds: int) -> Stopwatch:
    """Consumers that wait at the end of a partition, and a record that all of them get, again and again; the time from
    the record to the last of them in milliseconds. The topic must be empty."""
    producer = Line(broker, cycle([produce_frame(topic, 0, batch(100, 1), 1)]), 0, 1, produce_error_at(topic))
    at = fetch_error_at(topic)
    readers = [Line(broker, cycle([b""]), 0, 1, at) for _ in range(consumers)]
    latencies = []
    with closing(producer, *readers), timed(broker) as watch:
        for offset in range(rounds):
            wanted = fetch_frame(topic, offset, _MB, max_wait_ms=30_000)
            for reader in readers:
                reader.again(cycle([wanted]), 1)
                reader.send()
            before = time.perf_counter()
            producer.again(cycle([produce_frame(topic, 0, batch(100, 1), 1)]), 1)
            exchange([producer, *readers])
            latencies.append((time.perf_counter() - before) * 1000)
    watch.result.update(percentiles(latencies))
    watch.result["requests"] = rounds * consumers
    return watch


def idle_connections(
    broker: Target, topic: str, count: int, serial_count: int, idle_seconds: float = 0
) -> Stopwatch:
    """Open connections that ask for ApiVersions and then do nothing; how long that took, what the broker holds then,
    and what one more client gets beside them."""
    hello = frame(ApiVersionsRequest(), API_VERSIONS_VERSION)
    with timed(broker) as watch:
        lines = [Line(broker, iter([hello]), 1, 1, 8) for _ in range(count)]
        exchange(lines)
    with closing(*lines):
        time.sleep(idle_seconds)
        watch.result["resident_mb"] = resident_mb(broker.pid)
        beside = serial(broker, topic, serial_count)
    watch.result.update(beside.result, beside_cpu_seconds=beside.broker_cpu_seconds)
    return watch
