"""A real broker for your own tests, in this process, on a free port, in a temporary directory.

    from ottla.testing import Broker

    with Broker() as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

The broker runs in a thread of its own. Any broker setting can be given, by Kafka's name or with underscores for
the dots: `Broker({"auto.create.topics.enable": "false"})` or `Broker(num_partitions=4)`.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import trio

from ottla.config.broker_config import BrokerConfig
from ottla.config.listeners import Endpoint
from ottla.server.server import Server

__all__ = ["Broker"]

_STOP_SECONDS = 30


class Broker:
    """Starts when entered (or by `start`), stops when left (or by `stop`)."""

    def __init__(
        self, settings: Mapping[str, str] | None = None, *, data: str | Path | None = None, **more: object
    ) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._data = data
        self._settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "group.initial.rebalance.delay.ms": "0",
            **(settings or {}),
            **{name.replace("_", "."): _as_property(value) for name, value in more.items()},
        }
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._server: Server | None = None

    @property
    def bootstrap(self) -> str:
        """`host:port`, for a client's bootstrap servers."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def data(self) -> Path:
        """The data directory of the running broker."""
        return Path(self._running.broker.log_directories[0])

    @property
    def endpoints(self) -> list[Endpoint]:
        """Every listener with the port it really has."""
        return self._running.endpoints

    @property
    def host(self) -> str:
        return self.endpoints[0].host

    @property
    def port(self) -> int:
        return self.endpoints[0].port

    @property
    def _running(self) -> Server:
        if self._server is None:
            raise RuntimeError("the broker is not running; use `with Broker() as broker`")
        return self._server

    def start(self) -> Broker:
        """Start and wait until clients can connect."""
        if self._thread is not None:
            raise RuntimeError("the broker was started before")
        BrokerConfig.load(self._settings)  # refused before anything is made
        config = BrokerConfig.load({**self._settings, "log.dirs": self._make_data_directory()})
        self._thread = threading.Thread(target=self._run, args=(config,), name="ottla", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            self._thread = None
            self._remove_temporary()
            raise self._failure
        return self

    def stop(self) -> None:
        """Stop gracefully; a temporary directory is removed."""
        if self._thread is not None and self._token is not None:
            with suppress(trio.RunFinishedError):  # it has failed by itself, which is told below
                self._token.run_sync_soon(self._running.request_stop)
            self._thread.join(_STOP_SECONDS)
            self._thread = None
            self._server = None
        self._remove_temporary()
        if self._failure is not None:
            raise self._failure

    def _make_data_directory(self) -> str:
        if self._data is not None:
            return str(self._data)
        named = self._settings.get("log.dirs") or self._settings.get("log.dir")
        if named:
            return named
        self._temporary = tempfile.TemporaryDirectory(prefix="ottla-")
        return self._temporary.name

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, config: BrokerConfig) -> None:
        try:
            trio.run(self._serve, config)
        except BaseException as error:  # noqa: BLE001 - handed to the thread that started or stops the broker
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self, config: BrokerConfig) -> None:
        server = Server(config)
        self._token = trio.lowlevel.current_trio_token()

        def ready() -> None:
            self._server = server
            self._ready.set()

        await server.run(ready)


def _as_property(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
