"""The front door: `ottla serve` and whatever commands join it.

Heavy imports wait until the command is known, so that `--help` and a typing mistake answer at once.
"""

import argparse
import gc
import sys
from collections.abc import Sequence
from time import perf_counter

from ottla import __version__
from ottla.cli.log import add_log_command, run_log_command

_STARTED = perf_counter()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ottla", description="A Kafka broker in Python.")
    parser.add_argument("--version", action="version", version=f"ottla {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser(
        "serve",
        help="run a broker",
        description="Run a broker. Settings are Apache Kafka's own: a server.properties file, then --data, "
        "--listen and --set, the later winning.",
    )
    serve.add_argument("--config", metavar="FILE", help="a Kafka server.properties file")
    serve.add_argument("--data", metavar="DIR", help="data directory (log.dirs); default ottla-data")
    serve.add_argument(
        "--listen",
        metavar="HOST:PORT",
        action="append",
        help="where to listen (listeners); port 0 picks a free one; may be given several times as NAME://HOST:PORT, "
        "with listener.security.protocol.map; default 127.0.0.1:9092",
    )
    serve.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="any broker setting; may be given several times",
    )
    serve.add_argument(
        "--log-level",
        default="info",
        choices=["debug", "info", "warning", "error"],
        help="how much to log on standard error; default info",
    )
    add_log_command(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments = _parser().parse_args(argv)
    if arguments.command == "log":
        return run_log_command(arguments)
    # Start-up makes objects that stay: collecting among them would only take time. Serving turns it on again.
    gc.disable()
    from ottla.cli.serve import serve

    return serve(arguments, _STARTED)


if __name__ == "__main__":
    sys.exit(main())
