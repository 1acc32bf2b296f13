"""The list of what is measured: nothing that was asked for is missing."""

import pytest

from benchmarks.__main__ import choose
from benchmarks.measures import Aim
from benchmarks.parts import PARTS

FASTER, CHEAPER = Aim(ratio_at_least=1.3), Aim(ratio_at_most=0.5)
KEEPS_UP, NO_DEARER = Aim(ratio_at_least=1.0), Aim(ratio_at_most=1.0)
LIGHTER = Aim(ratio_at_most=0.15)
FLAT = Aim(value_at_most=1.5)

ASKED: dict[str, Aim] = {
    **dict.fromkeys(
        (
            "produce 1 KB, acks=all",
            "produce 100 B, acks=1",
            "produce 10 KB, acks=all",
            "produce 1 KB text, lz4, idempotent",
            "ProducerPerformance 1 KB, acks=all",
        ),
        FASTER,
    ),
    **{
        f"{title}: broker CPU": CHEAPER
        for title in (
            "produce 1 KB, acks=all",
            "produce 100 B, acks=1",
            "produce 10 KB, acks=all",
            "produce 1 KB text, lz4, idempotent",
        )
    },
    **dict.fromkeys(
        (
            "consume 100 B",
            "consume 1 KB",
            "consume 10 KB",
            "catch-up read of 5 GB",
            "10 consumers on one topic, 1 KB",
            "ConsumerPerformance 1 KB",
        ),
        KEEPS_UP,
    ),
    **{
        f"{title}: broker CPU": NO_DEARER
        for title in (
            "consume 100 B",
            "consume 1 KB",
            "consume 10 KB",
            "catch-up read of 5 GB",
            "10 consumers on one topic, 1 KB",
        )
    },
    **{f"raw requests, {count} connections": Aim(ratio_at_least=1.2) for count in (1, 8, 64)},
    "serial, acks=all: p50": Aim(ratio_at_most=0.8),
    "serial, acks=all: p99": Aim(ratio_at_most=0.5),
    "serial, acks=all: p99.9": Aim(ratio_at_most=0.5),
    "end to end at 1,000 msg/s: p50": Aim(ratio_at_most=0.8),
    "end to end at 1,000 msg/s: p99": Aim(ratio_at_most=0.5),
    "end to end at 20,000 msg/s: p50": Aim(ratio_at_most=0.8),
    "end to end at 20,000 msg/s: p99": Aim(ratio_at_most=0.5),
    "EndToEndLatency, mean": Aim(ratio_at_most=0.8),
    "throughput that is kept with transactions": Aim(value_at_least=97),
    "throughput that is kept of one that never waits": Aim(value_at_least=97),
    "ProducerPerformance: throughput that is kept": Aim(value_at_least=97),
    "1,000 connections opened and answered": NO_DEARER,
    "resident memory with 1,000 idle connections": LIGHTER,
    "1,000 partitions made": NO_DEARER,
    "1,000 partitions, each written once": NO_DEARER,
    "1,000 partitions, each written once: resident memory": LIGHTER,
    "5,000 partitions made": NO_DEARER,
    "5,000 idle partitions: resident memory": LIGHTER,
    "process start to first acknowledgement": Aim(ratio_at_most=0.06, value_at_most=0.4),
    "resident memory, idle": Aim(ratio_at_most=0.1),
    "resident memory after the load": Aim(ratio_at_most=0.1),
    "growth of cost, 1 → 1,000 partitions": FLAT,
    "growth of cost, 1 → 1,000 connections": FLAT,
    "growth of cost, 1 → 50 consumers": FLAT,
    "growth of cost of a read, 1 → 20 GB": FLAT,
    "growth of cost of an append, 1 → 20 GB": FLAT,
}
OF_THE_MACHINE = ("memcpy", "loopback sendfile", "disk append, page cache", "crc32c", "empty Trio round trip")
MEASURES = {measure.title: measure for part in PARTS for measure in part.measures}


@pytest.mark.parametrize("title", ASKED)
def test_what_was_asked_for_is_measured(title: str) -> None:
    """With the aim that was set for it."""
    assert MEASURES[title].aim == ASKED[title]


@pytest.mark.parametrize("title", OF_THE_MACHINE)
def test_the_limits_of_the_machine_are_measured(title: str) -> None:
    """In the same run."""
    assert title in MEASURES


def test_requests_are_shown_with_their_cpu() -> None:
    """What a request costs stands beside how many there are."""
    assert {f"raw requests, {count} connections: broker CPU each" for count in (1, 8, 64)} <= MEASURES.keys()


def test_titles_are_of_one_measure_only() -> None:
    """Results are kept by title, and sections by theirs."""
    assert len(MEASURES) == sum(len(part.measures) for part in PARTS)
    assert len({part.section.title for part in PARTS}) == len({part.name for part in PARTS}) == len(PARTS)


def test_all_parts_take_three_rounds() -> None:
    """A ratio without a spread says little."""
    assert {part.rounds for part in PARTS} == {3}


def test_parts_are_chosen_by_name() -> None:
    """Some, all, or a word on which there are."""
    assert [part.name for part in choose("latency, produce")] == ["produce", "latency"]
    assert choose("") == list(PARTS)
    with pytest.raises(ValueError, match="there is no part speed; there are start, produce"):
        choose("produce,speed")
