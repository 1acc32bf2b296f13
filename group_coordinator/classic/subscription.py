"""The topics in the metadata of members whose protocol type is `consumer`; nothing else of it is looked at.

The metadata is an int16 version, then an array of topic names in every version so far.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.wire.errors import MalformedMessage
from ottla.wire.schema import STRING, Message, array, decoder, record

CONSUMER_PROTOCOL_TYPE = "consumer"


@record(versions=(0, 0))
class ConsumerSubscription(Message):
    """The beginning that all versions share."""

    topics: list[str] = array(STRING)


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all members; None when one of them does not write what consumers write."""
    topics: set[str] = set()
    decode = decoder(ConsumerSubscription, 0)
    for each in metadata:
        try:
            subscription, _ = decode(memoryview(each), 2)
        except MalformedMessage:
            return None
        topics.update(subscription.topics)
    return frozenset(topics)
