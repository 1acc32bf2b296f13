"""The command line of `ottla`, all of it. A `serve` in its plain form does without (arguments.py)."""

import argparse

from ottla import __version__
from ottla.cli.arguments import LOG_LEVELS
from ottla.cli.log import add_log_command


def parser_of_commands() -> argparse.ArgumentParser:
    """What understands every command and tells its user of it."""
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
        choices=LOG_LEVELS,
        help="how much to log on standard error; default info",
    )
    add_log_command(commands)
    return parser
