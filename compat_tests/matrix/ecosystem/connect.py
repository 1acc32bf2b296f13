"""Kafka Connect with its file connectors: the lines of one file go through a topic to another, once each.

A worker is stopped or killed in the middle; where it was, it knows from its offsets: a file in standalone mode, a topic
in distributed mode. There the source writes in transactions (KIP-618), records and offsets together.
"""

import base64
import json
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compat_tests.broker_process import free_ports
from compat_tests.kafka.jars import connect_classpath
from compat_tests.matrix.case import Run, case, expect
from compat_tests.matrix.ecosystem.java_process import JavaProcess, write_properties
from compat_tests.matrix.ecosystem.kafka_clients import CONNECT

AREA = "Connect"
WORKERS = "org.apache.kafka.connect.cli"
PATIENCE_SECONDS = 90
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


class Pipe:
    """The files, the topic between them, and the settings of workers and connectors."""

    def __init__(self, run: Run, directory: Path) -> None:
        self.run = run
        self.directory = directory
        self.topic = run.create(1)
        self.source_name, self.sink_name = run.name("source"), run.name("sink")
        self.sent: list[str] = []
        self._input, self._output = directory / "in.txt", directory / "out.txt"
        self._input.touch()

    def write(self, lines: Iterable[str]) -> None:
        """Add lines to the file that is read."""
        with self._input.open("a") as file:
            for line in lines:
                self.sent.append(line)
                file.write(f"{line}\n")

    def arrived(self) -> list[str]:
        """The lines that came out."""
        return self._output.read_text().splitlines() if self._output.exists() else []

    def wait_until_all_arrived(self, worker: JavaProcess) -> None:
        """Wait until as many lines came out as were written, and hold them against those."""

        def observe() -> int:
            worker.check()
            return len(self.arrived())

        self.run.until(observe, lambda seen: seen >= len(self.sent), PATIENCE_SECONDS)
        expect(self.arrived(), self.sent, "the lines that came out")

    @property
    def worker(self) -> dict[str, str]:
        """What any worker is told."""
        [port] = free_ports(1)
        return {
            "bootstrap.servers": self.run.bootstrap,
            "listeners": f"http://127.0.0.1:{port}",
            "key.converter": STRINGS,
            "value.converter": STRINGS,
            "plugin.discovery": "service_load",
            "offset.flush.interval.ms": "500",
            "consumer.auto.offset.reset": "earliest",
        }

    @property
    def source(self) -> dict[str, str]:
        """The connector that reads the file."""
        return {
            "name": self.source_name,
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": str(self._input),
            "topic": self.topic,
            "batch.size": "50",
        }

    @property
    def sink(self) -> dict[str, str]:
        """The connector that writes the file."""
        return {
            "name": self.sink_name,
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "tasks.max": "1",
            "file": str(self._output),
            "topics": self.topic,
        }

    def stored(self) -> list[tuple[int, str]]:
        """Offsets and values in the topic, those of aborted transactions left out."""
        records = self.run.stage.call(
            "fetch", topic=self.topic, partition=0, offset=0, count=None, isolation="read_committed"
        )
        return [(each["offset"], base64.b64decode(each["value"]).decode()) for each in records]

    def wait_until_committed(self) -> int:
        """Wait until the sink's group has committed behind the last record; how far that is."""

        def observe() -> int:
            group = f"connect-{self.sink_name}"
            offsets = self.run.stage.call("committed", group=group, topic=self.topic, partitions=[0])
            return int(offsets["0"])

        end = self.stored()[-1][0] + 1
        return self.run.until(observe, lambda seen: seen == end, PATIENCE_SECONDS)

    def expect_once(self) -> None:
        """What was written must be in the topic, each line once and in its order."""
        expect([value for _, value in self.stored()], self.sent, "the records of the topic")


@contextmanager
def _pipe(run: Run) -> Iterator[Pipe]:
    with tempfile.TemporaryDirectory(prefix="connect-") as directory:
        yield Pipe(run, Path(directory))


@case(AREA, "standalone: a file through a topic to a file, across a restart", clients=[CONNECT])
def standalone(run: Run) -> object:
    """Lines written before, during and between two runs of the worker."""
    with _pipe(run) as pipe:

        def worker() -> JavaProcess:
            settings = {
                **pipe.worker,
                "offset.storage.file.filename": str(pipe.directory / "offsets"),
            }
            files = [
                write_properties(pipe.directory / f"{name}.properties", properties)
                for name, properties in (("worker", settings), ("from", pipe.source), ("to", pipe.sink))
            ]
            return JavaProcess(
                f"{WORKERS}.ConnectStandalone",
                files,
                classpath=connect_classpath(),
                directory=pipe.directory,
            )

        pipe.write(f"before {number}" for number in range(200))
        with worker() as first:
            pipe.wait_until_all_arrived(first)
            pipe.write(f"meanwhile {number}" for number in range(100))
            pipe.wait_until_all_arrived(first)
        pipe.wait_until_committed()
        pipe.write(f"between {number}" for number in range(100))
        with worker() as second:
            pipe.wait_until_all_arrived(second)
            pipe.write(["the last"])
            pipe.wait_until_all_arrived(second)
        pipe.expect_once()
        return {"lines": len(pipe.arrived()), "committed": pipe.wait_until_committed()}


class Rest:
    """A worker's REST interface."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, path: str, body: object = None, method: str = "GET") -> Any:
        """The JSON of the answer; None while there is no answer, or a refusal because of a rebalance."""
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self.address}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return json.loads(answer.read() or b"null")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def states(self, connector: str) -> list[str]:
        """The states of a connector and its tasks."""
        status = self.ask(f"/connectors/{connector}/status")
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])] if status else []


@case(AREA, "distributed: exactly once, across a kill -9", clients=[CONNECT])
def distributed(run: Run) -> object:
    """Configs, offsets and states are kept in topics; a worker that is killed is followed by one that goes on."""
    with _pipe(run) as pipe:
        topics = {kind: run.name(kind) for kind in ("config", "offset", "status")}
        group = run.name("workers")

        @contextmanager
        def worker() -> Iterator[tuple[JavaProcess, Rest]]:
            settings = {
                **pipe.worker,
                "group.id": group,
                "exactly.once.source.support": "enabled",
                "scheduled.rebalance.max.delay.ms": "0",
                "session.timeout.ms": "6000",
                "heartbeat.interval.ms": "500",
                "offset.storage.partitions": "3",
                "status.storage.partitions": "2",
            }
            for kind, topic in topics.items():
                settings[f"{kind}.storage.topic"] = topic
                settings[f"{kind}.storage.replication.factor"] = "1"
            path = write_properties(pipe.directory / "worker.properties", settings)
            with JavaProcess(
                f"{WORKERS}.ConnectDistributed",
                [path],
                classpath=connect_classpath(),
                directory=pipe.directory,
            ) as process:
                yield process, Rest(settings["listeners"])

        def wait_until_running(process: JavaProcess, rest: Rest) -> None:
            def observe() -> list[list[str]]:
                process.check()
                return [rest.states(pipe.source_name), rest.states(pipe.sink_name)]

            run.until(observe, lambda seen: seen == [["RUNNING"] * 2] * 2, PATIENCE_SECONDS)

        pipe.write(f"before {number}" for number in range(200))
        with worker() as (process, rest):
            for config in (pipe.source, pipe.sink):
                path = f"/connectors/{config['name']}/config"

                def put(path: str = path, config: dict[str, str] = config) -> bool:
                    process.check()
                    return rest.ask(path, config, "PUT") is not None

                run.until(put, bool, PATIENCE_SECONDS)
            wait_until_running(process, rest)
            pipe.wait_until_all_arrived(process)
            pipe.wait_until_committed()
            process.kill()
        pipe.write(f"between {number}" for number in range(100))
        with worker() as (process, rest):
            wait_until_running(process, rest)
            pipe.wait_until_all_arrived(process)
            pipe.wait_until_committed()
            pipe.expect_once()
            [offset] = rest.ask(f"/connectors/{pipe.source_name}/offsets")["offsets"]
            configs = rest.ask(f"/connectors/{pipe.sink_name}/config")
        return {
            "position in the file": offset["offset"]["position"],
            "sink": sorted(configs),
            "partitions": {kind: _partitions(run, topic) for kind, topic in topics.items()},
            # A worker that did not end in time was killed: its member is missed when its session is over.
            "group": run.until(
                lambda: run.stage.call("list_groups")[f"connect-{pipe.sink_name}"],
                lambda group: group["state"] == "Empty",
                PATIENCE_SECONDS,
            ),
        }


def _partitions(run: Run, topic: str) -> int:
    """How many a topic has that the worker made for itself; it must be a compacted one."""
    found = run.stage.call("metadata", topics=[topic])["topics"][topic]
    configs = run.stage.call("describe_configs", kind="topic", name=topic)
    expect(configs["cleanup.policy"]["value"], "compact", f"the cleanup policy of {topic}")
    return len(found["partitions"])
