"""`ottla log`: the arguments of the commands that look into data directories. What they do is in log_dump and
log_verify, imported when one of them is called.
"""

import argparse


def add_log_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Put `log` and its own commands beside the others."""
    log = commands.add_parser(
        "log",
        help="look into a data directory: dump, verify",
        description="Look into the files of a data directory, Ottla's or Apache Kafka's. Nothing is ever written.",
    )
    actions = log.add_subparsers(dest="action", required=True, metavar="ACTION")
    dump = actions.add_parser(
        "dump",
        help="show what is in a file",
        description="Show the batches of segments and metadata snapshots, the entries of indexes, producer "
        "snapshots and checkpoints, and the other small files. Of a directory, every file.",
    )
    dump.add_argument("paths", metavar="FILE|DIR", nargs="+")
    dump.add_argument(
        "--records", action="store_true", help="also the records of every batch, by their lengths"
    )
    dump.add_argument(
        "--payload",
        action="store_true",
        help="records with keys, values and headers, and secrets of the cluster metadata; implies --records",
    )
    dump.add_argument("--json", action="store_true", help="one JSON object a line, for programs")
    verify = actions.add_parser(
        "verify",
        help="check a partition or a whole data directory",
        description="Check every file of a partition or of a whole data directory against the others. Works beside "
        "a running broker, whose lock is not taken. One line for everything found wrong; exit code 0 if "
        "there is nothing, 1 if there is something, 2 if a directory cannot be read.",
    )
    verify.add_argument("paths", metavar="DIR", nargs="+")
    verify.add_argument(
        "--quick", action="store_true", help="headers and checksums of batches only, not the records in them"
    )
    verify.add_argument("--json", action="store_true", help="one JSON object a line, for programs")


def run_log_command(arguments: argparse.Namespace) -> int:
    """Dump or verify; returns the exit code."""
    if arguments.action == "dump":
        from ottla.cli.log_dump import dump

        return dump(arguments)
    from ottla.cli.log_verify import verify

    return verify(arguments)
