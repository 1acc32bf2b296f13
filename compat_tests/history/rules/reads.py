"""What consumers may see, and in which order."""

from __future__ import annotations

from collections.abc import Iterator

from compat_tests.history.operations import Assign, Outcome, Poll, Subscribe, topic_of
from compat_tests.history.view import Anomaly, History, Read


def phantom_read(history: History) -> Iterator[Anomaly]:
    """What is read was sent by somebody, there; of topics whose writers the history knows."""
    for read in history.reads:
        if topic_of(read.key) in history.written_topics and not history.possible_writers(read):
            yield Anomaly("phantom_read", _of(read), "nobody sent it")


def aborted_read(history: History) -> Iterator[Anomaly]:
    """G1a: read_committed shows nothing whose writer failed or aborted; nobody sees what was refused outright."""
    for read in history.reads:
        writers = history.possible_writers(read)
        is_aborted = writers and all(each.outcome == Outcome.FAIL for each in writers)
        is_visible = read.reader.is_read_committed or not any(each.transactional_id for each in writers)
        if is_aborted and is_visible:
            yield Anomaly("aborted_read", _of(read), f"{writers[0].name}, which wrote it, failed")


def precommitted_read(history: History) -> Iterator[Anomaly]:
    """A transaction does not read under read_committed what it has itself not committed yet."""
    for read in history.committed_reads:
        if read.reader.transactional_id is not None and history.writer(read) is read.reader:
            yield Anomaly("precommitted_read", _of(read), "is its own")


def poll_order(history: History) -> Iterator[Anomaly]:
    """A consumer reads a partition forwards and leaves nothing out, until it is assigned anew."""
    for is_read_committed in (True, False):
        versions = history.versions(is_read_committed=is_read_committed)
        positions: dict[tuple[str, str], int] = {}
        subscribed: set[str] = set()
        for operation in history.operations:
            process = operation.process
            inside: set[str] = set()
            for step in operation.steps:
                if isinstance(step, Assign):
                    subscribed.discard(process)
                    for key in step.keys:
                        positions.pop((process, key), None)
                elif isinstance(step, Subscribe):
                    subscribed.add(process)
                elif isinstance(step, Poll) and operation.is_read_committed == is_read_committed:
                    if process in subscribed and step.key not in inside:
                        positions.pop((process, step.key), None)
                    inside.add(step.key)
                    for offset, value in step.records:
                        number = versions[step.key][offset]
                        before = positions.get((process, step.key))
                        positions[process, step.key] = number
                        if before is None or number == before + 1:
                            continue
                        rule = "poll_skip" if number > before else "nonmonotonic_poll"
                        evidence = f"record {number} of the partition came after record {before}"
                        yield Anomaly(rule, _of(Read(step.key, offset, value, operation)), evidence)


def _of(read: Read) -> str:
    return f"{read.reader.name} read {read.key}@{read.offset} {read.value!r}"
