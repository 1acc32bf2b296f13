"""`ottla log verify`: every check of a partition or a data directory, one line for each finding.

Findings go to standard output, everything else to standard error. A bar shows how far the reading came when standard
error is a terminal and it takes longer than a moment.
"""

import argparse
import json
import os
import sys
from time import monotonic
from typing import TextIO

from ottla.cli.reasons import reason_of
from ottla.log_store.directory import METADATA_LOG
from ottla.log_store.verify.directory import (
    DirectoryCheck,
    is_in_use,
    is_partition_directory,
    partition_names,
    segment_bytes,
)
from ottla.log_store.verify.finding import Finding, Findings
from ottla.log_store.verify.partition import PartitionCheck, VerifyOptions
from ottla.metadata.errors import MetadataError
from ottla.metadata.inspect import topic_ids, verify_identity, verify_metadata_log
from ottla.wire.uuids import format_uuid

CLEAN, FOUND, UNREADABLE = 0, 1, 2


class CannotVerify(Exception):
    """What was named is no partition and no data directory."""


def verify(arguments: argparse.Namespace) -> int:
    """Check every directory; returns the worst exit code."""
    code = CLEAN
    for path in arguments.paths:
        try:
            found = verify_path(path.rstrip(os.sep) or os.sep, quick=arguments.quick, as_json=arguments.json)
        except (OSError, CannotVerify) as error:
            print(f"ottla: cannot verify {path}: {reason_of(error, path)}", file=sys.stderr)
            code = UNREADABLE
            continue
        if found:
            code = max(code, FOUND)
    return code


def verify_path(path: str, *, quick: bool, as_json: bool) -> int:
    """Check one directory and print what is wrong; returns how many findings there are."""
    is_partition = is_partition_directory(path)
    names = [] if is_partition else partition_names(path)
    if not is_partition and not names and not os.path.exists(os.path.join(path, "meta.properties")):
        raise CannotVerify("it is no partition and no data directory")
    directories = [path] if is_partition else [os.path.join(path, name) for name in names]
    in_use = is_in_use(os.path.dirname(os.path.abspath(path)) if is_partition else path)
    if in_use:
        print(f"ottla: a broker is using {path}: what it has just begun is left out", file=sys.stderr)
    bar = Progress(segment_bytes(directories), sys.stderr)
    options = VerifyOptions(in_use=in_use, looks_inside=not quick, on_bytes=bar.advance)
    count = 0
    for finding in _check_partition(path, options) if is_partition else _check_directory(path, options):
        bar.clear()
        _print_finding(finding, as_json)
        count += 1
    bar.clear()
    things = f"{len(directories)} partition{'' if len(directories) == 1 else 's'}"
    result = "nothing wrong" if not count else f"{count} finding{'' if count == 1 else 's'}"
    print(f"ottla: {path}: {things}, {bar.total} bytes: {result}", file=sys.stderr)
    return count


def _check_partition(path: str, options: VerifyOptions) -> Findings:
    yield from PartitionCheck(path, options).run()
    if os.path.basename(path) == METADATA_LOG:
        yield from verify_metadata_log(path)


def _check_directory(path: str, options: VerifyOptions) -> Findings:
    yield from verify_identity(path)
    check = DirectoryCheck(path, options)
    yield from check.run()
    metadata_log = os.path.join(path, METADATA_LOG)
    if not os.path.isdir(metadata_log):
        print(f"ottla: {path} has no metadata log, so topic ids were not checked", file=sys.stderr)
        return
    yield from verify_metadata_log(metadata_log)
    yield from _check_topic_ids(metadata_log, check)


def _check_topic_ids(metadata_log: str, check: DirectoryCheck) -> Findings:
    try:
        known = topic_ids(metadata_log)
    except MetadataError:
        return  # found by the checks of the metadata log
    for (topic, _), partition in check.partitions.items():
        if partition.topic_id is None or os.path.basename(partition.directory) == METADATA_LOG:
            continue
        file = os.path.join(partition.directory, "partition.metadata")
        if topic not in known:
            yield Finding(partition.directory, f"the cluster knows no topic {topic}")
        elif known[topic] != partition.topic_id:
            told, right = format_uuid(partition.topic_id), format_uuid(known[topic])
            yield Finding(file, f"the topic id is {told}, but {topic} has {right}")


def _print_finding(finding: Finding, as_json: bool) -> None:
    if as_json:
        values = {
            "file": finding.path,
            "offset": finding.offset,
            "position": finding.position,
            "problem": finding.problem,
        }
        print(json.dumps(values), flush=True)
    else:
        print(finding, flush=True)


class Progress:
    """A bar on a terminal, nothing elsewhere."""

    WIDTH = 30
    QUIET_SECONDS = 0.5

    def __init__(self, total: int, out: TextIO) -> None:
        self.total = total
        self._out = out
        self._done = 0
        self._next = monotonic() + self.QUIET_SECONDS if out.isatty() else float("inf")
        self._is_drawn = False

    def advance(self, count: int) -> None:
        """So many bytes more were read."""
        self._done += count
        now = monotonic()
        if now >= self._next:
            self._next = now + 0.1
            share = min(1.0, self._done / self.total) if self.total else 1.0
            filled = int(share * self.WIDTH)
            bar = "#" * filled + "." * (self.WIDTH - filled)
            self._out.write(f"\r[{bar}] {share:4.0%} {self._done >> 20} of {self.total >> 20} MiB")
            self._out.flush()
            self._is_drawn = True

    def clear(self) -> None:
        """Take the bar away before something else is written."""
        if self._is_drawn:
            self._out.write("\r\x1b[K")
            self._out.flush()
            self._is_drawn = False
