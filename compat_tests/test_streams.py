"""Kafka Streams with exactly_once_v2 on both brokers: a word count that is killed again and again counts right.

It goes by way of a repartition topic and keeps its counts in a changelog, all of it in transactions. Each input
gives one output, the word with its count so far, so that every count from 1 to the last must be there once.
"""

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer

from compat_tests.broker_process import dying_with_its_parent
from compat_tests.eventually import eventually
from compat_tests.history.check import check
from compat_tests.history.operations import Poll
from compat_tests.history.recorder import Recorder
from compat_tests.kafka.jars import compile_java, java_executable, streams_classpath
from compat_tests.kafka.tools import QUICK_START, QUIET_LOG
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic
from compat_tests.transactional.confluent import Client

PARTITIONS = 2
WORDS = [f"word-{number}" for number in range(7)]
PART = 210
KILLS = 2
PATIENCE_SECONDS = 60
SOURCE = Path(__file__).parent / "kafka" / "java" / "WordCount.java"


@functools.cache
def _classes() -> str:
    classes = tempfile.mkdtemp(prefix="word-count-")
    atexit.register(shutil.rmtree, classes, ignore_errors=True)
    compile_java(SOURCE, Path(classes), streams_classpath())
    return classes


@contextmanager
def word_count(bootstrap: str, name: str, directory: Path) -> Iterator[None]:
    """The application, running, until the block ends: then it is killed."""
    settings = {
        "bootstrap.servers": bootstrap,
        "application.id": name,
        "source": f"{name}-source",
        "target": f"{name}-target",
        "state.dir": str(directory),
        "commit.interval.ms": "50",
        "replication.factor": "1",
        # The same member comes back: nobody has to wait for the session of the dead one.
        "main.consumer.group.instance.id": name,
        "consumer.auto.offset.reset": "earliest",
    }
    command = [java_executable(), "-Xmx256m", *QUICK_START, *QUIET_LOG]
    command += ["-cp", f"{_classes()}{os.pathsep}{streams_classpath()}", "WordCount"]
    errors_path = directory / "errors.txt"
    with errors_path.open("a") as errors:
        process = subprocess.Popen(
            [*dying_with_its_parent(), *command, *(f"{key}={value}" for key, value in settings.items())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    running = threading.Event()
    states: list[str] = []

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            states.append(line.strip())
            if line.strip() == "running":
                running.set()

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        assert running.wait(PATIENCE_SECONDS), f"{states} {errors_path.read_text()[-3000:]}"
        yield
    finally:
        process.kill()
        process.wait()
        thread.join()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()


def test_word_count_that_is_killed(bootstrap: str, topic_name: str, tmp_path: Path) -> None:
    """Killed as soon as it has counted something of each part of the words; the last one comes to the end."""
    source, target = f"{topic_name}-source", f"{topic_name}-target"
    with RawClient.to(bootstrap) as raw:
        create_topic(raw, source, PARTITIONS)
        create_topic(raw, target, PARTITIONS)
    reader = Client({"bootstrap.servers": bootstrap})
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    sent: Counter[str] = Counter()

    def fill() -> None:
        for number in range(PART):
            word = WORDS[number % len(WORDS)]
            producer.produce(source, word.encode(), partition=number % PARTITIONS)
            sent[word] += 1
        assert producer.flush(PATIENCE_SECONDS) == 0

    def results() -> dict[int, list[tuple[int, str]]]:
        return {at: reader.read(target, at, "read_committed") for at in range(PARTITIONS)}

    def count() -> int:
        return sum(map(len, results().values()))

    for _ in range(KILLS):
        before = count()
        fill()
        with word_count(bootstrap, topic_name, tmp_path):
            eventually(lambda before=before: count() > before, True, PATIENCE_SECONDS)  # type: ignore[misc]
    fill()
    with word_count(bootstrap, topic_name, tmp_path):
        eventually(lambda: count() >= sent.total(), True, PATIENCE_SECONDS)
    recorder = Recorder()
    for partition, records in results().items():
        recorder.happened("last", Poll(f"{target}-{partition}", tuple(records)), final=True)
    assert check(recorder.operations()) == []
    counted: dict[str, list[int]] = {word: [] for word in WORDS}
    for records in results().values():
        for _, value in records:
            word, _, number = value.partition("=")
            counted[word].append(int(number))
    assert counted == {word: list(range(1, sent[word] + 1)) for word in WORDS}
