"""A real, single-node Apache Kafka in KRaft mode, 4.3.0 or 3.9.1, broker and controller in one process.

It is formatted once per data directory, takes free ports, and counts as ready when it answers a Metadata
request with itself in it. Its settings are Kafka's defaults but for what one node alone must have.
"""

import base64
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from compat_tests.broker_process import BrokerFailed, BrokerProcess, free_ports, serves
from compat_tests.kafka.jars import KAFKA_VERSION
from compat_tests.kafka.tools import QUICK_START, java_command, run_tool

START_SECONDS = 90
TEST_OPTIONS = ("-Xmx512m", *QUICK_START)
# What Kafka's own start script gives the JVM.
KAFKA_DEFAULT_OPTIONS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)


class RealKafka(BrokerProcess):
    """Apache Kafka itself."""

    name = "kafka"
    format_options: tuple[str, ...] = ()

    def __init__(
        self,
        data_dir: Path | None = None,
        properties: Mapping[str, str] | None = None,
        port: int = 0,
        *,
        java_options: Sequence[str] = TEST_OPTIONS,
        version: str = KAFKA_VERSION,
    ) -> None:
        super().__init__(data_dir, properties, port)
        self.java_options = tuple(java_options)
        self.version = version
        self.controller_port = 0
        self.config_path = self.scratch_dir / "server.properties"

    def prepare(self) -> None:
        """Choose ports, write the settings, and format the directory if it is new."""
        super().prepare()
        if not self.controller_port:
            [self.controller_port] = free_ports(1)
        self.config_path.write_text("".join(f"{name}={value}\n" for name, value in self._settings().items()))
        if not (self.data_dir / "meta.properties").exists():
            cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            done = run_tool(
                # One in 64 ids begins with a dash, and must not be taken for an option.
                "kafka.tools.StorageTool",
                "format",
                f"--cluster-id={cluster_id}",
                *self.format_options,
                "-c",
                str(self.config_path),
                version=self.version,
            )
            if done.returncode != 0:
                raise BrokerFailed(f"Kafka's directory could not be formatted: {done.stdout}{done.stderr}")

    def start(self) -> Self:
        """Start Kafka and wait until it serves."""
        self.prepare()
        # A JVM that is killed leaves its native libraries behind; here they go with the scratch directory.
        options = (*self.java_options, f"-Djava.io.tmpdir={self.scratch_dir}")
        command = java_command("kafka.Kafka", str(self.config_path), options=options, version=self.version)
        process = self._spawn(command)
        self._wait_until_it_serves(process)
        return self

    def _wait_until_it_serves(self, process: "subprocess.Popen[str]") -> None:
        pause_seconds = 0.05
        for _ in range(int(START_SECONDS / pause_seconds)):
            if serves(self.port):
                return
            try:
                code = process.wait(pause_seconds)
            except subprocess.TimeoutExpired:
                continue
            self._forget_process()
            raise BrokerFailed(f"Kafka ended with code {code}; it last wrote:\n{self.log_tail()}")
        self.kill()
        raise BrokerFailed(f"Kafka did not become ready; it last wrote:\n{self.log_tail()}")

    def _settings(self) -> dict[str, str]:
        node_id = self.properties.get("node.id", "1")
        settings = {
            "process.roles": "broker,controller",
            "node.id": node_id,
            "controller.quorum.voters": f"{node_id}@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        return {**settings, **self.properties}
