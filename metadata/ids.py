"""Which random ids may be given to topics, directories, incarnations and clusters.

Never one of those that Kafka reserves (the first hundred), and never one whose text begins with a dash, which
command-line tools would take for an option.
"""

from collections.abc import Callable

from ottla.wire.uuids import Uuid, format_uuid

_RESERVED = 100


def usable_uuid(new_uuid: Callable[[], Uuid]) -> Uuid:
    """The first id from `new_uuid` that may be used."""
    while True:
        uuid = new_uuid()
        if int.from_bytes(uuid, "big") >= _RESERVED and not format_uuid(uuid).startswith("-"):
            return uuid
