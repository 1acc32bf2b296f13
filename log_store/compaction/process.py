"""The process that cleans: jobs come in as lines, answers go out as lines, the end of the input ends it at once.

Cleaning asks something of every record, for seconds or minutes, in Python where nothing is compiled. In a thread of the
broker it would take turns with the event loop at the interpreter's lock (docs/adr/0005-compaction-in-a-process.md), so
it has an interpreter of its own, whose memory is also given back as a whole.
"""

from __future__ import annotations

import errno
import gc
import os
import queue
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from ottla.log_store.compaction.cleaner import clean
from ottla.log_store.compaction.job import Answer, CleaningFailed, CleaningJob, decode_job, encode_answer
from ottla.log_store.index_file import CorruptIndex
from ottla.wire.errors import KafkaError


def command() -> list[str]:
    """What starts it, with the modules that this process has."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"
    return [sys.executable, "-c", code]


def answers_to(job: CleaningJob) -> Iterator[Answer]:
    """Everything that is to be said about a job, failures included."""
    try:
        yield from clean(job)
    except (KafkaError, CorruptIndex) as error:
        yield CleaningFailed(str(error))
    except OSError as error:
        yield CleaningFailed(error.strerror or str(error), error.errno or errno.EIO)


def serve(jobs: Iterable[bytes], answers: BinaryIO) -> None:
    """Do one job after the other."""
    for line in jobs:
        for answer in answers_to(decode_job(line)):
            answers.write(encode_answer(answer))
            answers.flush()


def main() -> None:
    """Serve the broker that started this process, and die with it at once: whoever takes over the directory cleans it
    too."""
    gc.disable()  # nothing here goes in circles, and the map would be walked again and again
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, jobs), daemon=True).start()
    serve(iter(jobs.get, b""), sys.stdout.buffer)


def _receive(lines: BinaryIO, jobs: queue.SimpleQueue[bytes]) -> None:
    for line in lines:
        jobs.put(line)
    os._exit(0)
