"""What admins see of transactions, in every version, on both brokers."""

from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic
from compat_tests.raw_transaction_requests import TransactionRequests, name_of
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest

STATES = {"empty": "Empty", "open": "Ongoing", "done": "CompleteCommit", "gone": "CompleteAbort"}


@pytest.fixture
def producers(raw: RawClient, topic_name: str) -> Iterator[dict[str, TransactionRequests]]:
    """Transactional ids in four states, named after their topic and these."""
    create_topic(raw, topic_name, 2)
    made = {name: TransactionRequests(raw, f"{topic_name}-{name}") for name in STATES}
    identities = {name: producer.init() for name, producer in made.items()}
    for name in ("open", "done", "gone"):
        assert made[name].add(identities[name], topic_name, [0, 1]) == {0: "NONE", 1: "NONE"}
    assert made["done"].end(identities["done"]) == "NONE"
    assert made["gone"].end(identities["gone"], commit=False) == "NONE"
    assert {name: producer.wait_ended() for name, producer in made.items()} == STATES
    yield made
    made["open"].end(identities["open"])


def listed(raw: RawClient, topic_name: str, request: ListTransactionsRequest, version: int) -> dict[str, str]:
    """The states by the end of the id, of the ids of this test."""
    answer = raw.send(request, version)
    assert name_of(answer.error_code) == "NONE"
    return {
        each.transactional_id.removeprefix(f"{topic_name}-"): each.transaction_state
        for each in answer.transaction_states
        if each.transactional_id.startswith(topic_name)
    }


@pytest.mark.parametrize("version", [0, 1, 2])
def test_listing(
    raw: RawClient, producers: dict[str, TransactionRequests], topic_name: str, version: int
) -> None:
    """All, by state, by producer id, by both; states that do not exist are named."""

    def found(**filters: Any) -> dict[str, str]:
        return listed(raw, topic_name, ListTransactionsRequest(**filters), version)

    assert found() == STATES
    assert found(state_filters=["Ongoing", "Empty"]) == {"open": "Ongoing", "empty": "Empty"}
    producer_id = producers["done"].describe().producer_id
    assert found(producer_id_filters=[producer_id]) == {"done": "CompleteCommit"}
    assert found(producer_id_filters=[producer_id], state_filters=["Ongoing"]) == {}
    answer = raw.send(ListTransactionsRequest(["Ongoing", "ongoing", "Nonsense"]), version)
    assert sorted(answer.unknown_state_filters) == ["Nonsense", "ongoing"]
    only_unknown = raw.send(ListTransactionsRequest(["Nonsense"]), version)
    assert only_unknown.transaction_states == []


@pytest.mark.parametrize("version", [1, 2])
def test_listing_by_duration(
    raw: RawClient, producers: dict[str, TransactionRequests], topic_name: str, version: int
) -> None:
    """Transactions that began longer ago; an id that never had one began before all time."""

    def found(duration_ms: int) -> dict[str, str]:
        request = ListTransactionsRequest(duration_filter=duration_ms)
        return listed(raw, topic_name, request, version)

    eventually(lambda: found(0), STATES)
    assert found(-1) == STATES
    assert found(3_600_000) == {"empty": "Empty"}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("{topic}-(open|done)", {"open", "done"}),
        ("{topic}", set()),
        (".*-empty", {"empty"}),
        ("", set(STATES)),
        (None, set(STATES)),
    ],
)
def test_listing_by_pattern(
    raw: RawClient,
    producers: dict[str, TransactionRequests],
    topic_name: str,
    pattern: str | None,
    expected: set[str],
) -> None:
    """The whole id has to match; no pattern is all ids (KIP-1152)."""
    wanted = pattern and pattern.format(topic=topic_name)
    found = listed(raw, topic_name, ListTransactionsRequest(transactional_id_pattern=wanted), 2)
    assert set(found) == expected


def test_listing_by_what_is_no_pattern(raw: RawClient, producers: dict[str, TransactionRequests]) -> None:
    """An expression that does not parse."""
    answer = raw.send(ListTransactionsRequest(transactional_id_pattern="(open"), 2)
    assert name_of(answer.error_code) == "INVALID_REGULAR_EXPRESSION"
    assert answer.transaction_states == []


def test_describing(producers: dict[str, TransactionRequests], topic_name: str) -> None:
    """An open transaction has its partitions and its start; an ended one keeps the start; others have neither."""
    for name, producer in producers.items():
        state = producer.describe()
        assert (name_of(state.error_code), state.transaction_state) == ("NONE", STATES[name])
        assert (state.transaction_start_time_ms > 0) == (name != "empty")
        found = {each.topic: sorted(each.partitions) for each in state.topics}
        assert found == ({topic_name: [0, 1]} if name == "open" else {})


def test_describing_what_is_not_there(raw: RawClient, producers: dict[str, TransactionRequests]) -> None:
    """An id that nobody has used."""
    state = TransactionRequests(raw, "never-used").describe()
    assert name_of(state.error_code) == "TRANSACTIONAL_ID_NOT_FOUND"
    assert (state.transaction_state, state.producer_id, state.topics) == ("", 0, [])


@pytest.mark.parametrize("version", range(1, 7))
def test_the_coordinator_of_an_id(
    raw: RawClient, producers: dict[str, TransactionRequests], version: int
) -> None:
    """It is found in every version that knows transactional ids."""
    if version >= 4:
        request = FindCoordinatorRequest(coordinator_keys=["a", ""], key_type=1)
        found = raw.send(request, version).coordinators
        assert [each.key for each in found] == ["a", ""]
    else:
        found = [raw.send(FindCoordinatorRequest("a", key_type=1), version)]
    assert {name_of(each.error_code) for each in found} == {"NONE"}
    assert all(each.node_id >= 0 and each.port > 0 for each in found)
