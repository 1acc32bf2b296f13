"""`ottla serve`: settings from file and command line, one line when ready, a graceful stop on Ctrl-C or SIGTERM,
a line on how late the event loop is on SIGUSR1."""

import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from pathlib import Path
from time import perf_counter

import trio

from ottla import native
from ottla.cli.arguments import ServeArguments
from ottla.cli.start_image import StartImage
from ottla.config.broker_config import BrokerConfig
from ottla.config.definition import ConfigError
from ottla.config.properties import parse_properties_file
from ottla.log_store.directory import DirectoryInUse
from ottla.metadata.errors import MetadataError
from ottla.server.garbage import begin_collecting
from ottla.server.listener import BindError
from ottla.server.log_catalog import StorageFailed
from ottla.server.loop_lag import LoopLag
from ottla.server.server import DataError, Server
from ottla.server.turns import SWITCH_SECONDS
from ottla.wire.compiled_text import compile_text, use_compiler

log = logging.getLogger("ottla.cli")

_DEFAULT_LISTENER = "127.0.0.1:9092"
_SAVE_AFTER_SECONDS = 0.4
_MANY_FILES = 16_384


def read_settings(arguments: ServeArguments) -> dict[str, str]:
    """Merge the properties file with the command line. Raises ConfigError."""
    settings: dict[str, str] = {}
    if arguments.config is not None:
        try:
            text = Path(arguments.config).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ConfigError(f"cannot read {arguments.config}: {reason}") from error
        settings.update(parse_properties_file(text))
    if arguments.data is not None:
        settings["log.dirs"] = arguments.data
    if arguments.listen is not None:
        settings["listeners"] = ",".join(map(_as_listener, arguments.listen))
    for assignment in arguments.set:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set takes name=value, not {assignment!r}")
        settings[name.strip()] = value.strip()
    # Without security a broker should not be open to the network unless somebody says so.
    settings.setdefault("listeners", f"PLAINTEXT://{_DEFAULT_LISTENER}")
    return settings


def _as_listener(address: str) -> str:
    if "://" in address:
        return address
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise ConfigError(f"--listen takes HOST:PORT, not {address!r}")
    return f"PLAINTEXT://{host}:{port}"


def serve(arguments: ServeArguments, image: StartImage, started: float) -> int:
    """Run until told to stop. A broker that cannot start says why in one sentence and exits with 1."""
    logging.basicConfig(
        level=arguments.log_level.upper(),
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    allow_many_files()
    sys.setswitchinterval(SWITCH_SECONDS)
    if native.is_stale:
        log.warning("the compiled part is older than its sources; much slower Python serves for it: run make")
    try:
        config = BrokerConfig.load(read_settings(arguments))
        return trio.run(_run, Server(config), image, started)
    except* (ConfigError, MetadataError, DirectoryInUse, DataError, BindError, StorageFailed) as group:
        for error in _leaves(group):
            print(f"ottla: {error}", file=sys.stderr)
    return 1


def allow_many_files() -> None:
    """Every segment and connection takes a descriptor; as many as the system lets us have, as Java does it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems name a limit that they do not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # The system makes its table of them larger when it is full, and once a process has threads, that keeps whoever
    # opens something waiting for 5 to 15 ms. It never becomes smaller.
    with suppress(ValueError, OSError):
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = _MANY_FILES if allowed == resource.RLIM_INFINITY else min(allowed, _MANY_FILES)
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.close(fcntl(null, F_DUPFD_CLOEXEC, highest - 1))
        finally:
            os.close(null)


def _leaves(group: BaseExceptionGroup) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return found


async def _run(server: Server, image: StartImage, started: float) -> int:
    lag = LoopLag()
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGUSR1) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_heed_signals, server, lag, signals)

            def on_ready() -> None:
                _announce(server, started)
                nursery.start_soon(_save_soon, image)

            await server.run(on_ready=on_ready)
            nursery.cancel_scope.cancel()
    lag.tell_at_stop()
    return 0


async def _save_soon(image: StartImage) -> None:
    """When the first clients may have been answered. Whatever goes wrong, the broker does not need it."""
    await trio.sleep(_SAVE_AFTER_SECONDS)
    use_compiler(compile_text)
    try:
        await trio.to_thread.run_sync(image.save)
    except Exception:
        log.exception("what the start has read could not be kept for the next one")


async def _heed_signals(server: Server, lag: LoopLag, signals: AsyncIterator[int]) -> None:
    """The first signal to stop stops gracefully; a second one at once, and recovery sees to the rest. SIGUSR1 is
    answered with a line on how late the loop is."""
    received = 0
    async for number in signals:
        if number == signal.SIGUSR1:
            lag.tell()
            continue
        received += 1
        if received > 1:
            os._exit(128 + number)
        log.info("stopping signal=%s", signal.Signals(number).name)
        server.request_stop()


def _announce(server: Server, started: float) -> None:
    begin_collecting()
    addresses = ",".join(str(endpoint) for endpoint in server.endpoints)
    directories = ",".join(server.broker.log_directories)
    topics = len(server.broker.image.topics_by_name)
    print(
        f"ottla ready: {addresses}, data {directories}, {topics} topic{'' if topics == 1 else 's'}, "
        f"started in {perf_counter() - started:.3f} s",
        flush=True,
    )
