"""The image: every record folds, the delta says what changed, transactions are all or nothing."""

import pytest

from ottla.metadata.errors import MetadataError
from ottla.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage, prepared
from ottla.metadata.image.snapshot import image_records
from ottla.metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from ottla.wire.uuids import MIGRATING_DIRECTORY
from tests.metadata.images import DIRECTORY, image_of, running_image, topic_config, topic_records

ORDERS_ID = b"orders.........."

ONE_OF_EACH: list[MetadataRecord] = [
    FeatureLevelRecord(name="metadata.version", feature_level=30),
    FeatureLevelRecord(name="transaction.version", feature_level=2),
    RegisterBrokerRecord(broker_id=1, broker_epoch=5, incarnation_id=b"i" * 16, log_dirs=[DIRECTORY]),
    RegisterBrokerRecord(broker_id=2, broker_epoch=6),
    UnfenceBrokerRecord(id=1, epoch=5),
    FenceBrokerRecord(id=2, epoch=6),
    BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, cordoned_log_dirs=[]),
    UnregisterBrokerRecord(broker_id=2, broker_epoch=6),
    RegisterControllerRecord(controller_id=1),
    *topic_records("orders", 2),
    *topic_records("gone", 1),
    topic_config("orders", "retention.ms", "5"),
    topic_config("gone", "retention.ms", "5"),
    PartitionChangeRecord(partition_id=1, topic_id=ORDERS_ID, leader=-1, eligible_leader_replicas=[1]),
    ClearElrRecord(topic_name="orders"),
    RemoveTopicRecord(topic_id=b"gone............"),
    ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="7"),
    ClientQuotaRecord(
        entity=[EntityData(entity_type="user", entity_name=None)], key="producer_byte_rate", value=1.5
    ),
    ClientQuotaRecord(
        entity=[EntityData(entity_type="user", entity_name="a")], key="producer_byte_rate", remove=True
    ),
    ProducerIdsRecord(broker_id=1, broker_epoch=5, next_producer_id=2000),
    AccessControlEntryRecord(id=b"a" * 16, resource_name="orders", principal="User:a"),
    AccessControlEntryRecord(id=b"b" * 16, resource_name="orders", principal="User:b"),
    RemoveAccessControlEntryRecord(id=b"b" * 16),
    UserScramCredentialRecord(name="a", mechanism=1, salt=b"s", iterations=4096),
    UserScramCredentialRecord(name="a", mechanism=2, salt=b"s", iterations=4096),
    RemoveUserScramCredentialRecord(name="a", mechanism=2),
    DelegationTokenRecord(owner="User:a", token_id="one"),
    DelegationTokenRecord(owner="User:a", token_id="two"),
    RemoveDelegationTokenRecord(token_id="two"),
    ZkMigrationStateRecord(zk_migration_state=0),
    NoOpRecord(),
]


def contents(image: MetadataImage) -> dict[str, object]:
    """Everything an image says, in a form that compares."""
    return {
        "topics": {
            name: (topic.topic_id, dict(topic.partitions)) for name, topic in image.topics_by_name.items()
        },
        "ids": {topic_id: topic.name for topic_id, topic in image.topics_by_id.items()},
        **{
            name: getattr(image, name)
            for name in (
                "configs",
                "features",
                "brokers",
                "controllers",
                "next_producer_id",
                "client_quotas",
                "acls",
                "scram_credentials",
                "delegation_tokens",
                "colliding_names",
            )
        },
    }


def test_every_record_folds_and_a_snapshot_brings_all_of_it_back() -> None:
    """One record of each kind; the records of the image make the same image again."""
    image = MetadataImage()
    for record in ONE_OF_EACH:
        image.apply(record)
    again = MetadataImage()
    for record in image_records(image):
        again.apply(record)
    assert contents(again) == contents(image)
    assert image.topic_names() == ["orders"]
    assert image.configs == {
        (TOPIC_RESOURCE, "orders"): {"retention.ms": "5"},
        (BROKER_RESOURCE, ""): {"log.retention.ms": "7"},
    }
    assert list(image.brokers) == [1]
    assert image.brokers[1].cordoned_log_dirs == []
    assert not image.brokers[1].fenced
    assert list(image.acls) == [b"a" * 16]
    assert list(image.scram_credentials) == [(1, "a")]
    assert list(image.delegation_tokens) == ["one"]
    assert image.client_quotas == {(("user", None),): {"producer_byte_rate": 1.5}}
    assert image.next_producer_id == 2000


def test_topic_names_stay_sorted() -> None:
    """Names come in order however topics come and go."""
    image = image_of([*topic_records("b"), *topic_records("c"), *topic_records("a")])
    assert image.topic_names() == ["a", "b", "c"]
    image.apply(RemoveTopicRecord(topic_id=b"b..............."))
    assert image.topic_names() == ["a", "c"]


def test_colliding_names_are_known_while_the_topic_lives() -> None:
    """Names that metrics cannot tell apart are found by their unified form."""
    image = image_of(topic_records("a.b"))
    assert image.colliding_names == {"a_b": {"a.b"}}
    image.apply(RemoveTopicRecord(topic_id=b"a.b............."))
    assert image.colliding_names == {}


def test_delta_tells_what_to_do() -> None:
    """Created topics, new partitions, changed configs and leaders, deleted topics."""
    image = image_of()
    delta = image.apply_all([*topic_records("orders", 2), topic_config("orders", "retention.ms", "5")], 7)
    assert [topic.name for topic in delta.created_topics] == ["orders"]
    assert [(topic.name, partition) for topic, partition in delta.new_partitions] == [
        ("orders", 0),
        ("orders", 1),
    ]
    assert list(delta.changed_configs) == [(TOPIC_RESOURCE, "orders")]
    assert image.last_offset == 7
    delta = image.apply(PartitionChangeRecord(partition_id=0, topic_id=ORDERS_ID, leader=1))
    [change] = delta.changed_partitions
    assert (change.before.leader_epoch, change.after.leader_epoch) == (0, 1)
    assert delta.created_topics == []
    delta = image.apply(RemoveTopicRecord(topic_id=ORDERS_ID))
    assert [topic.name for topic in delta.deleted_topics] == ["orders"]
    assert image.configs == {}


def test_topic_made_and_deleted_at_once_needs_nothing() -> None:
    """A delta whose records cancel out asks for no log to be made or deleted."""
    records = [*topic_records("t"), RemoveTopicRecord(topic_id=b"t...............")]
    delta = image_of().apply_all(records, 1)
    assert (delta.created_topics, delta.new_partitions, delta.deleted_topics) == ([], [], [])


def test_topic_made_again_under_another_id_is_deleted_and_created() -> None:
    """The old topic's log has to go even when the new one has its name."""
    image = image_of(topic_records("t"))
    delta = image.apply_all(
        [RemoveTopicRecord(topic_id=b"t..............."), TopicRecord(name="t", topic_id=b"n" * 16)], 1
    )
    assert [topic.topic_id for topic in delta.deleted_topics] == [b"t..............."]
    assert [topic.topic_id for topic in delta.created_topics] == [b"n" * 16]


@pytest.mark.parametrize(
    ("change", "epochs", "leader", "isr"),
    [
        (PartitionChangeRecord(isr=[]), (0, 1), 1, ()),
        (PartitionChangeRecord(leader=-1), (1, 1), -1, (1,)),
        (PartitionChangeRecord(leader=1), (1, 1), 1, (1,)),
    ],
)
def test_partition_changes_move_epochs(
    change: PartitionChangeRecord, epochs: tuple[int, int], leader: int, isr: tuple[int, ...]
) -> None:
    """Naming a leader moves the leader epoch; any change moves the partition epoch."""
    image = image_of(topic_records("orders"))
    change.partition_id, change.topic_id = 0, ORDERS_ID
    image.apply(change)
    partition = image.topics_by_id[ORDERS_ID].partitions[0]
    assert (partition.leader_epoch, partition.partition_epoch) == epochs
    assert (partition.leader, partition.isr) == (leader, isr)


def test_old_partition_records_have_no_directories() -> None:
    """A record from before directories were known counts as migrating."""
    image = image_of(
        [
            TopicRecord(name="t", topic_id=ORDERS_ID),
            PartitionRecord(topic_id=ORDERS_ID, partition_id=0, replicas=[1, 2]),
        ]
    )
    assert image.topics_by_id[ORDERS_ID].partitions[0].directories == (MIGRATING_DIRECTORY,) * 2


def test_transaction_takes_effect_at_its_end() -> None:
    """Nothing of a transaction is seen before its end record, and all of it then."""
    image = image_of()
    image.apply(BeginTransactionRecord(name="t"))
    for record in topic_records("orders"):
        assert image.apply(record).created_topics == []
    assert image.topic_names() == []
    assert image.in_transaction
    delta = image.apply(EndTransactionRecord())
    assert [topic.name for topic in delta.created_topics] == ["orders"]
    assert not image.in_transaction


def test_aborted_transaction_never_happened() -> None:
    """An abort drops what was held back."""
    image = image_of()
    image.apply(BeginTransactionRecord())
    for record in topic_records("orders"):
        image.apply(record)
    image.apply(AbortTransactionRecord(reason="no"))
    assert image.topic_names() == []
    assert not image.in_transaction


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([EndTransactionRecord()], "never began"),
        ([BeginTransactionRecord(), BeginTransactionRecord()], "inside another"),
        ([RemoveTopicRecord(topic_id=ORDERS_ID)], "no such topic"),
        ([PartitionRecord(topic_id=ORDERS_ID)], "no such topic"),
        (
            [
                TopicRecord(name="t", topic_id=ORDERS_ID),
                PartitionChangeRecord(partition_id=3, topic_id=ORDERS_ID),
            ],
            "changes partition 3",
        ),
        ([TopicRecord(name="t", topic_id=ORDERS_ID), TopicRecord(name="t", topic_id=DIRECTORY)], "twice"),
        ([FenceBrokerRecord(id=9, epoch=1)], "broker 9"),
        ([ClearElrRecord(topic_name="t")], "never made"),
    ],
)
def test_contradictions_are_named(records: list[MetadataRecord], words: str) -> None:
    """A log that contradicts itself is refused with a sentence."""
    image = image_of()
    with pytest.raises(MetadataError, match=words):
        image.apply_all(records, 0)


def test_registration_of_another_epoch_is_refused() -> None:
    """A change for a broker's former incarnation cannot be folded."""
    image = running_image()
    with pytest.raises(MetadataError, match="broker 1 with epoch 3"):
        image.apply(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=3, fenced=1))


@pytest.mark.parametrize("in_transaction", [False, True])
def test_prepared_records_come_to_the_same(in_transaction: bool) -> None:
    """What can be done of them before it is their turn changes neither the image nor the delta."""
    records = [*topic_records("more", 3), *ONE_OF_EACH]
    if in_transaction:
        records = [BeginTransactionRecord(name="t"), *topic_records("more", 3), EndTransactionRecord()]
    plain, quick = MetadataImage(), MetadataImage()
    delta, same = plain.apply_all(records, 7), quick.apply_all(prepared(records), 7)
    assert list(image_records(quick)) == list(image_records(plain))
    assert [(topic.name, index) for topic, index in same.new_partitions] == [
        (topic.name, index) for topic, index in delta.new_partitions
    ]
    assert same.changed_configs == delta.changed_configs


def test_an_impossible_partition_is_found_when_it_is_prepared() -> None:
    """Before anything is written."""
    with pytest.raises(MetadataError):
        prepared([PartitionRecord(replicas=[1], directories=[DIRECTORY, DIRECTORY])])
