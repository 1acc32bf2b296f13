"""Records what stock clients really say to a real Apache Kafka, and what it answers: `python -m
compat_tests.record_golden`.

A proxy stands between the clients and the broker, which advertises the proxy's address. Of each client,
API, version and direction the first frame that is not too long is kept in tests/golden/frames.json; the
codecs must read those bytes and write them again just so. Frames are recorded again only when a client's
new release is to be covered.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version as release_of
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition

from compat_tests.kafka.real import RealKafka

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden" / "frames.json"
MAX_FRAME_BYTES = 1500


class Recorder:
    """Frames by client, key, version and direction; responses are known by the request they answer."""

    def __init__(self) -> None:
        self.client = ""
        self.frames: dict[tuple[str, int, int, str], bytes] = {}

    def note(self, direction: str, api_key: int, api_version: int, frame: bytes) -> None:
        if len(frame) <= MAX_FRAME_BYTES:
            self.frames.setdefault((self.client, api_key, api_version, direction), frame)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [
            {
                "client": client,
                "api_key": key,
                "version": version,
                "direction": direction,
                "frame": frame.hex(),
            }
            for (client, key, version, direction), frame in sorted(self.frames.items())
        ]
        path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


@contextmanager
def proxy(listener: socket.socket, broker_port: int, recorder: Recorder) -> Iterator[None]:
    """Pass frames on between whoever connects and the broker, and note them."""

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", broker_port))
            asked: dict[int, tuple[int, int]] = {}
            threading.Thread(target=pump, args=(client, broker, asked, True), daemon=True).start()
            threading.Thread(target=pump, args=(broker, client, asked, False), daemon=True).start()

    def pump(
        source: socket.socket, target: socket.socket, asked: dict[int, tuple[int, int]], up: bool
    ) -> None:
        with source, target, source.makefile("rb") as stream:
            while len(prefix := stream.read(4)) == 4:
                frame = stream.read(struct.unpack(">i", prefix)[0])
                if up:
                    key, version, correlation_id = struct.unpack_from(">hhi", frame)
                    asked[correlation_id] = key, version
                    recorder.note("request", key, version, frame)
                else:
                    known = asked.pop(struct.unpack_from(">i", frame)[0], None)
                    if known:
                        recorder.note("response", *known, frame)
                try:
                    target.sendall(prefix + frame)
                except OSError:
                    return

    threading.Thread(target=serve, daemon=True).start()
    yield
    listener.close()


def confluent(bootstrap: str) -> None:
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap}
    admin = AdminClient(settings)
    for future in admin.create_topics([NewTopic("golden-confluent", 2, 1)]).values():
        future.result()
    for done in admin.describe_configs([ConfigResource(ResourceType.TOPIC, "golden-confluent")]).values():
        done.result()
    producer = Producer({**settings, "enable.idempotence": True, "linger.ms": 0})
    producer.produce("golden-confluent", b"value", b"key", partition=0, headers=[("h", b"1")])
    producer.flush(30)
    consumer = Consumer({**settings, "group.id": "golden", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("golden-confluent", 0, 0)])
    while (message := consumer.poll(30)) is None or message.error():
        pass
    consumer.get_watermark_offsets(TopicPartition("golden-confluent", 0), timeout=10)
    consumer.close()
    for future in admin.create_partitions([NewPartitions("golden-confluent", 3)]).values():
        future.result()
    for future in admin.delete_topics(["golden-confluent"]).values():
        future.result()


def kafka_python(bootstrap: str) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.create_topics({"golden-kafka-python": {"num_partitions": 1, "replication_factor": 1}})
        admin.describe_topics(["golden-kafka-python"])
        admin.describe_cluster()
        with closing(KafkaProducer(bootstrap_servers=bootstrap)) as producer:
            producer.send("golden-kafka-python", b"value", b"key", headers=[("h", b"1")]).get(30)
        with closing(KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")) as consumer:
            consumer.assign([KafkaPythonPartition("golden-kafka-python", 0)])
            assert consumer.poll(30_000)
        admin.delete_topics(["golden-kafka-python"])


def aio_kafka(bootstrap: str) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        await producer.send_and_wait("golden-aiokafka", b"value", b"key", headers=[("h", b"1")])
        await producer.stop()
        consumer = AIOKafkaConsumer(
            "golden-aiokafka", bootstrap_servers=bootstrap, auto_offset_reset="earliest"
        )
        await consumer.start()
        await consumer.getone()
        await consumer.stop()

    asyncio.run(run())


def main() -> None:
    recorder = Recorder()
    clients: dict[str, Callable[[str], None]] = {
        f"confluent-kafka {release_of('confluent-kafka')}": confluent,
        f"kafka-python {release_of('kafka-python')}": kafka_python,
        f"aiokafka {release_of('aiokafka')}": aio_kafka,
    }
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryDirectory() as data:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        properties = {"advertised.listeners": f"PLAINTEXT://{address}"}
        with RealKafka(Path(data), properties) as broker, proxy(listener, broker.port, recorder):
            for name, run in clients.items():
                recorder.client = name
                run(address)
    recorder.write(GOLDEN)


if __name__ == "__main__":
    main()
