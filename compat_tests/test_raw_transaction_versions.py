"""Every version of the requests of transactions, and every refusal, on both brokers."""

import pytest

from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic
from compat_tests.raw_transaction_requests import Identity, TransactionRequests, name_of
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

MAX_TIMEOUT_MS = 900_000


@pytest.fixture
def producer(raw: RawClient, topic_name: str) -> TransactionRequests:
    """A producer whose transactional id is the name of its topic, which has three partitions."""
    create_topic(raw, topic_name, 3)
    return TransactionRequests(raw, topic_name)


def fenced(version: int, since: int) -> str:
    """What a fenced producer is told."""
    return "PRODUCER_FENCED" if version >= since else "INVALID_PRODUCER_EPOCH"


# InitProducerId --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
def test_each_start_gets_the_next_epoch(producer: TransactionRequests, version: int) -> None:
    """The id stays, the epoch counts the producers."""
    first = producer.init(version)
    assert first.producer_epoch == 0
    assert producer.init(version) == (first.producer_id, 1)
    assert producer.describe().transaction_state == "Empty"


@pytest.mark.parametrize("version", [3, 4, 5])
def test_going_on_after_an_error(producer: TransactionRequests, version: int) -> None:
    """The newest producer gets the next epoch, its repeated request the same one, any other is fenced (KIP-360)."""
    first = producer.init(version)
    second = producer.init(version, first)
    assert second == (first.producer_id, 1)
    assert producer.init(version, first) == second
    assert producer.init(version, second) == (first.producer_id, 2)
    for wrong in (first, Identity(first.producer_id, 9), Identity(first.producer_id + 1, 2)):
        answer = producer.ask_init(version, wrong)
        assert name_of(answer.error_code) == fenced(version, 4)
        assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


def test_a_repeat_after_another_start_is_fenced(producer: TransactionRequests) -> None:
    """What might be a repeat is none once somebody else has started."""
    first = producer.init()
    producer.init(5, first)
    producer.init()
    assert name_of(producer.ask_init(5, first).error_code) == "PRODUCER_FENCED"


@pytest.mark.parametrize("timeout_ms", [-1, 0, MAX_TIMEOUT_MS + 1])
def test_timeouts_that_are_refused(producer: TransactionRequests, timeout_ms: int) -> None:
    """A transaction may not take longer than the broker allows, nor no time."""
    answer = producer.ask_init(timeout_ms=timeout_ms)
    assert name_of(answer.error_code) == "INVALID_TRANSACTION_TIMEOUT"
    assert name_of(producer.ask_init(timeout_ms=MAX_TIMEOUT_MS).error_code) == "NONE"


@pytest.mark.parametrize("identity", [Identity(5, -1), Identity(-1, 5)])
def test_half_an_identity_is_refused(producer: TransactionRequests, identity: Identity) -> None:
    """An id without an epoch says nothing."""
    assert name_of(producer.ask_init(5, identity).error_code) == "INVALID_REQUEST"


def test_empty_transactional_ids_are_refused(raw: RawClient, topic_name: str) -> None:
    """By all requests that have one."""
    create_topic(raw, topic_name)
    nobody = TransactionRequests(raw, "")
    identity = Identity(1, 0)
    assert name_of(nobody.ask_init().error_code) == "INVALID_REQUEST"
    assert nobody.add(identity, topic_name) == {0: "INVALID_REQUEST"}
    assert nobody.add_offsets(identity, "g") == "INVALID_REQUEST"
    assert [nobody.end(identity, version) for version in (4, 5)] == ["INVALID_REQUEST"] * 2
    assert name_of(nobody.describe().error_code) == "INVALID_REQUEST"


def test_a_new_producer_ends_the_transaction_of_the_old_one(producer: TransactionRequests) -> None:
    """It asks again until the abort is done; the old one's requests are fenced, whatever they are."""
    topic = producer.transactional_id
    old = producer.init()
    assert producer.add(old, topic) == {0: "NONE"}
    assert name_of(producer.ask_init().error_code) == "CONCURRENT_TRANSACTIONS"
    assert producer.wait_ended() == "CompleteAbort"
    assert producer.init() == (old.producer_id, old.producer_epoch + 2)
    assert producer.add(old, topic) == {0: "PRODUCER_FENCED"}
    assert producer.add_offsets(old, "g") == "PRODUCER_FENCED"
    assert [producer.end(old, version) for version in (1, 4, 5)] == [
        "INVALID_PRODUCER_EPOCH",
        "PRODUCER_FENCED",
        "PRODUCER_FENCED",
    ]


# AddPartitionsToTxn, AddOffsetsToTxn -----------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
def test_adding_partitions(producer: TransactionRequests, version: int) -> None:
    """Added ones may be added again; the transaction has them all."""
    topic = producer.transactional_id
    identity = producer.init()
    assert producer.add(identity, topic, [0, 2], version) == {0: "NONE", 2: "NONE"}
    assert producer.add(identity, topic, [0, 1], version) == {0: "NONE", 1: "NONE"}
    state = producer.describe()
    assert (state.transaction_state, state.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert Identity(state.producer_id, state.producer_epoch) == identity
    assert {each.topic: sorted(each.partitions) for each in state.topics} == {topic: [0, 1, 2]}
    assert producer.end(identity, 5 if version >= 4 else 3, commit=False) == "NONE"
    assert producer.wait_ended() == "CompleteAbort"


@pytest.mark.parametrize("version", range(6))
def test_partitions_that_are_refused(producer: TransactionRequests, version: int) -> None:
    """One that does not exist refuses them all, and nothing is added; the wrong producers have none at all."""
    topic = producer.transactional_id
    identity = producer.init()
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    assert producer.add(identity, topic, [0, 3], version) == {0: "OPERATION_NOT_ATTEMPTED", 3: unknown}
    found = producer.ask_add(
        identity,
        [AddPartitionsToTxnTopic("no-such-topic", [0]), AddPartitionsToTxnTopic(topic, [1])],
        version,
    )
    assert {
        (each.name, one.partition_index): name_of(one.partition_error_code)
        for each in found
        for one in each.results_by_partition
    } == {("no-such-topic", 0): unknown, (topic, 1): "OPERATION_NOT_ATTEMPTED"}
    other_epoch = Identity(identity.producer_id, 7)
    assert producer.add(other_epoch, topic, [0], version) == {0: fenced(version, 2)}
    other_id = Identity(identity.producer_id + 10_000, 0)
    assert producer.add(other_id, topic, [0], version) == {0: "INVALID_PRODUCER_ID_MAPPING"}
    assert producer.describe().transaction_state == "Empty"
    stranger = TransactionRequests(producer.raw, f"{topic}-other")
    assert stranger.add(identity, topic, [0], version) == {0: "INVALID_PRODUCER_ID_MAPPING"}


def test_the_brokers_own_topics_are_refused(producer: TransactionRequests) -> None:
    """A client has no business in them; brokers do."""
    identity = producer.init()
    topic = "__transaction_state"
    assert producer.add(identity, topic, [0], 3) == {0: "TOPIC_AUTHORIZATION_FAILED"}
    assert producer.add(identity, topic, [0], 4) == {0: "NONE"}
    assert producer.end(identity, 5, commit=False) == "NONE"
    assert producer.wait_ended() == "CompleteAbort"


@pytest.mark.parametrize("version", [4, 5])
def test_verifying_partitions(producer: TransactionRequests, version: int) -> None:
    """A broker learns which partitions are in the transaction, and nothing is added (KIP-890)."""
    topic = producer.transactional_id

    def verify(identity: Identity) -> dict[int, str]:
        topics = [AddPartitionsToTxnTopic(topic, [0, 1])]
        (found,) = producer.ask_add(identity, topics, version, verify_only=True)
        return {
            each.partition_index: name_of(each.partition_error_code) for each in found.results_by_partition
        }

    identity = producer.init()
    both = "TRANSACTION_ABORTABLE"
    assert verify(identity) == {0: both, 1: both}
    assert producer.add(identity, topic, [0]) == {0: "NONE"}
    assert verify(identity) == {0: "NONE", 1: both}
    assert verify(Identity(identity.producer_id, 5)) == dict.fromkeys([0, 1], "PRODUCER_FENCED")
    assert verify(Identity(identity.producer_id + 9_999, 0)) == dict.fromkeys(
        [0, 1], "INVALID_PRODUCER_ID_MAPPING"
    )
    assert producer.end(identity) == "NONE"
    producer.wait_ended()
    assert verify(identity) == {0: both, 1: both}


@pytest.mark.parametrize("version", [4, 5])
def test_many_transactions_at_once(producer: TransactionRequests, version: int) -> None:
    """Each has its own results."""
    topic = producer.transactional_id
    other = TransactionRequests(producer.raw, f"{topic}-2")
    identities = [producer.init(), other.init()]
    topics = [AddPartitionsToTxnTopic(topic, [0])]
    wanted = [
        AddPartitionsToTxnTransaction(topic, *identities[0], False, topics),
        AddPartitionsToTxnTransaction(other.transactional_id, *identities[1], True, topics),
        AddPartitionsToTxnTransaction(f"{topic}-3", *identities[1], False, topics),
    ]
    answer = producer.raw.send(AddPartitionsToTxnRequest(transactions=wanted), version)
    assert {
        each.transactional_id: name_of(each.topic_results[0].results_by_partition[0].partition_error_code)
        for each in answer.results_by_transaction
    } == {
        topic: "NONE",
        other.transactional_id: "TRANSACTION_ABORTABLE",
        f"{topic}-3": "INVALID_PRODUCER_ID_MAPPING",
    }


@pytest.mark.parametrize("version", range(5))
def test_adding_offsets(producer: TransactionRequests, version: int) -> None:
    """The group's partition of the offsets topic joins the transaction."""
    identity = producer.init()
    assert producer.add_offsets(Identity(identity.producer_id, 4), "g", version) == fenced(version, 2)
    wrong_id = Identity(identity.producer_id + 9_999, 0)
    assert producer.add_offsets(wrong_id, "g", version) == "INVALID_PRODUCER_ID_MAPPING"
    assert producer.add_offsets(identity, "g", version) == "NONE"
    assert [each.topic for each in producer.describe().topics] == ["__consumer_offsets"]
    assert producer.end(identity) == "NONE"
    assert producer.wait_ended() == "CompleteCommit"


# EndTxn ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", range(5))
def test_ending_a_transaction_of_the_first_kind(
    producer: TransactionRequests, version: int, commit: bool
) -> None:
    """The epoch stays; a repeat succeeds, the opposite does not; the next transaction may begin."""
    identity = producer.init()
    assert producer.end(identity, version, commit=commit) == "INVALID_TXN_STATE"
    assert producer.add(identity, producer.transactional_id) == {0: "NONE"}
    assert producer.end(Identity(identity.producer_id, 3), version, commit=commit) == fenced(version, 2)
    wrong_id = Identity(identity.producer_id + 9_999, 0)
    assert producer.end(wrong_id, version, commit=commit) == "INVALID_PRODUCER_ID_MAPPING"
    assert producer.end(identity, version, commit=commit) == "NONE"
    assert producer.wait_ended() == ("CompleteCommit" if commit else "CompleteAbort")
    assert producer.end(identity, version, commit=commit) == "NONE"
    assert producer.end(identity, version, commit=not commit) == "INVALID_TXN_STATE"
    state = producer.describe()
    assert (state.producer_epoch, state.topics) == (identity.producer_epoch, [])
    assert producer.add(identity, producer.transactional_id) == {0: "NONE"}
    assert producer.describe().transaction_state == "Ongoing"


@pytest.mark.parametrize("commit", [True, False])
def test_ending_a_transaction_of_the_second_kind(producer: TransactionRequests, commit: bool) -> None:
    """The answer has the next epoch; a repeat with the old one gets it again, the opposite is refused."""
    first = producer.init()
    assert producer.add(first, producer.transactional_id, [0, 1], 4) == {0: "NONE", 1: "NONE"}
    answer = producer.ask_end(first, commit=commit)
    assert name_of(answer.error_code) == "NONE"
    second = Identity(answer.producer_id, answer.producer_epoch)
    assert second == Identity(first.producer_id, first.producer_epoch + 1)
    assert producer.wait_ended() == ("CompleteCommit" if commit else "CompleteAbort")
    repeated = producer.ask_end(first, commit=commit)
    assert name_of(repeated.error_code) == "NONE"
    assert Identity(repeated.producer_id, repeated.producer_epoch) == second
    assert producer.end(first, 5, commit=not commit) == "INVALID_TXN_STATE"
    assert producer.add(first, producer.transactional_id, [0], 4) == {0: "PRODUCER_FENCED"}
    assert producer.add(second, producer.transactional_id, [0], 4) == {0: "NONE"}
    assert producer.end(first, 5, commit=commit) == "PRODUCER_FENCED"
    assert producer.end(Identity(first.producer_id + 9_999, 0), 5) == "INVALID_PRODUCER_ID_MAPPING"


def test_ending_what_is_not_open(producer: TransactionRequests) -> None:
    """With the second kind an abort bumps the epoch wherever it comes; a commit needs a transaction."""
    identity = producer.init()
    assert producer.end(identity, 5, commit=True) == "INVALID_TXN_STATE"
    assert producer.end(identity.before(), 5, commit=False) == "PRODUCER_FENCED"
    for expected in (1, 2):
        answer = producer.ask_end(identity, commit=False)
        assert (name_of(answer.error_code), answer.producer_epoch) == ("NONE", expected)
        assert producer.wait_ended() == "CompleteAbort"
        identity = Identity(answer.producer_id, answer.producer_epoch)
    assert producer.end(identity, 5, commit=True) == "INVALID_TXN_STATE"
    assert producer.add(identity, producer.transactional_id, [0], 4) == {0: "NONE"}
    answer = producer.ask_end(identity, commit=True)
    assert producer.wait_ended() == "CompleteCommit"
    identity = Identity(answer.producer_id, answer.producer_epoch)
    assert producer.end(identity, 5, commit=True) == "INVALID_TXN_STATE"
    assert producer.end(identity, 5, commit=False) == "NONE"
    assert producer.wait_ended() == "CompleteAbort"


def test_going_on_after_an_end(producer: TransactionRequests) -> None:
    """The epoch before a bump at the end counts as that of a repeat, the bumped one goes on."""
    first = producer.init()
    assert producer.add(first, producer.transactional_id, [0], 4) == {0: "NONE"}
    answer = producer.ask_end(first)
    producer.wait_ended()
    second = Identity(answer.producer_id, answer.producer_epoch)
    assert producer.init(5, first) == second
    assert producer.init(5, second) == (first.producer_id, 2)
    assert name_of(producer.ask_init(5, first).error_code) == "PRODUCER_FENCED"
