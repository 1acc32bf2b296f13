"""Produce and consume by assignment: what goes in comes out, with each client, on both brokers."""

import pytest

from compat_tests.clients import CLIENTS, Client, Message, Stored
from compat_tests.clients.confluent_client import ConfluentClient
from compat_tests.conftest import NewTopic

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
T0 = 1_700_000_000_000

each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
each_codec = pytest.mark.parametrize("codec", CODECS)

MIXED = [
    Message(b"key", b"value", (), T0),
    Message(None, b"no key", (), T0 + 5),
    Message(b"no value", None, (), T0 + 10),
    Message(b"", b"", (), T0 + 15),
    Message(b"headers", b"x", (("a", b"1"), ("a", b"2"), ("empty", b""), ("größe", b"\x00\xff")), T0 + 20),
    Message(bytes(range(256)), bytes(range(255, -1, -1)), (), T0 + 25),
]
MIXED_STORED = [
    Stored(0, offset, message.key, message.value, message.headers, T0 + 5 * offset)
    for offset, message in enumerate(MIXED)
]


@each_codec
@each_client
def test_records_come_back_as_they_were_sent(
    client: Client, codec: str, bootstrap: str, new_topic: NewTopic
) -> None:
    """Keys, values, nulls, headers and timestamps survive every codec, for whichever client reads them."""
    topic = new_topic()
    assert client.produce(bootstrap, topic, MIXED, codec=codec) == [0, 1, 2, 3, 4, 5]
    for reader in CLIENTS:
        assert reader.read(bootstrap, topic) == MIXED_STORED, reader.name


@each_client
def test_nulls_are_not_empty(client: Client, bootstrap: str, new_topic: NewTopic) -> None:
    """Nothing at all in a record, and a header without a value: not every producer lets one send that."""
    topic = new_topic()
    headers = (("null", None), ("empty", b""))
    ConfluentClient().produce(
        bootstrap, topic, [Message(None, None, (), T0), Message(b"", None, headers, T0)]
    )
    assert client.read(bootstrap, topic) == [
        Stored(0, 0, None, None, (), T0),
        Stored(0, 1, b"", None, headers, T0),
    ]


@each_client
def test_sizes_from_one_byte_to_900_kilobytes(client: Client, bootstrap: str, new_topic: NewTopic) -> None:
    """Record sizes up to just below the default limit."""
    topic = new_topic()
    sizes = [1, 2, 127, 128, 16_384, 100_000, 900_000]
    values = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    assert client.produce(bootstrap, topic, [Message(None, value) for value in values]) == list(range(7))
    assert [stored.value for stored in client.read(bootstrap, topic)] == values


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@each_client
def test_acks(client: Client, acks: str, bootstrap: str, new_topic: NewTopic) -> None:
    """Every level of acknowledgement stores the records; only with 0 the offsets stay unknown."""
    topic = new_topic()
    offsets = client.produce(bootstrap, topic, [Message(None, b"%d" % n) for n in range(10)], acks=acks)
    assert offsets == ([-1] * 10 if acks == "0" else list(range(10)))
    stored = client.read(bootstrap, topic, count=10)
    assert [(record.offset, record.value) for record in stored] == [(n, b"%d" % n) for n in range(10)]


@each_client
def test_idempotent_producer(client: Client, bootstrap: str, new_topic: NewTopic) -> None:
    """Idempotent producers get their producer id and write each record once, over several partitions."""
    topic = new_topic(partitions=2)
    messages = [Message(b"k", b"%d" % n, partition=n % 2) for n in range(200)]
    offsets = client.produce(bootstrap, topic, messages, idempotent=True)
    assert offsets == [n // 2 for n in range(200)]
    for partition in (0, 1):
        values = [stored.value for stored in client.read(bootstrap, topic, partition)]
        assert values == [b"%d" % n for n in range(partition, 200, 2)]


@each_client
def test_partitions_count_their_own_offsets(client: Client, bootstrap: str, new_topic: NewTopic) -> None:
    """Each partition has its own offsets from 0, and its own beginning and end."""
    topic = new_topic(partitions=4)
    messages = [Message(None, b"%d" % n, partition=n % 3) for n in range(9)]
    assert client.produce(bootstrap, topic, messages) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    ends = [client.watermarks(bootstrap, topic, partition) for partition in range(4)]
    assert ends == [(0, 3), (0, 3), (0, 3), (0, 0)]
    values = [stored.value for stored in client.read(bootstrap, topic, 2)]
    assert values == [b"2", b"5", b"8"]
    assert client.read(bootstrap, topic, 3) == []


@each_codec
@each_client
def test_seek_into_the_middle_of_a_batch(
    client: Client, codec: str, bootstrap: str, new_topic: NewTopic
) -> None:
    """Reading may start at any offset, also inside a batch and inside the last one."""
    topic = new_topic()
    client.produce(bootstrap, topic, [Message(None, b"%d" % n) for n in range(50)], codec=codec)
    assert [r.offset for r in client.read(bootstrap, topic, start=17)] == list(range(17, 50))
    assert [r.value for r in client.read(bootstrap, topic, start=49)] == [b"49"]
    assert [r.offset for r in client.read(bootstrap, topic, start=3, count=2)] == [3, 4]


@each_client
def test_offsets_by_timestamp(client: Client, bootstrap: str, new_topic: NewTopic) -> None:
    """The first record at or after a time, exact to the record though they share a batch."""
    topic = new_topic()
    assert client.offset_at(bootstrap, topic, T0) is None
    times = [T0, T0 + 10, T0 + 20, T0 + 20, T0 + 15, T0 + 40]
    client.produce(bootstrap, topic, [Message(None, b"x", (), t) for t in times])
    asked = [0, T0, T0 + 1, T0 + 10, T0 + 11, T0 + 20, T0 + 21, T0 + 40, T0 + 41]
    found = [client.offset_at(bootstrap, topic, moment) for moment in asked]
    assert found == [0, 0, 1, 1, 2, 2, 5, 5, None]


@each_client
def test_append_time_topics_stamp_the_records(client: Client, bootstrap: str, new_topic: NewTopic) -> None:
    """With LogAppendTime the broker's clock replaces the producer's timestamps."""
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"})
    client.produce(bootstrap, topic, [Message(None, b"x", (), T0), Message(None, b"y", (), T0 + 1)])
    stamps = [stored.timestamp_ms for stored in client.read(bootstrap, topic)]
    assert min(stamps) > T0 + 1_000_000_000


@each_client
def test_reading_goes_on_where_it_ended(client: Client, bootstrap: str, new_topic: NewTopic) -> None:
    """A reader that reached the end gets exactly the records that came later."""
    topic = new_topic()
    client.produce(bootstrap, topic, [Message(None, b"1"), Message(None, b"2")])
    first = client.read(bootstrap, topic)
    assert client.read(bootstrap, topic, start=2) == []
    client.produce(bootstrap, topic, [Message(None, b"3")], codec="lz4")
    later = client.read(bootstrap, topic, start=2)
    assert [r.value for r in first + later] == [b"1", b"2", b"3"]
    assert client.watermarks(bootstrap, topic) == (0, 3)
