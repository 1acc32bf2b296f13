"""Topic, directory and cluster ids: 16 bytes, shown as Kafka shows them (URL-safe base64 without padding,
22 characters).

The three first values are reserved by Kafka (KIP-516, KIP-858) and are never given to a topic or directory.
"""

from __future__ import annotations

import binascii

Uuid = bytes

ZERO_UUID: Uuid = bytes(16)
ONE_UUID: Uuid = bytes(15) + b"\x01"
MIGRATING_DIRECTORY: Uuid = ZERO_UUID
UNASSIGNED_DIRECTORY: Uuid = ONE_UUID
LOST_DIRECTORY: Uuid = bytes(15) + b"\x02"

_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def format_uuid(uuid: Uuid) -> str:
    """The 22 characters Kafka prints and stores for an id."""
    if len(uuid) != 16:
        raise ValueError(f"an id has 16 bytes, not {len(uuid)}")
    return binascii.b2a_base64(uuid, newline=False).translate(_TO_URL_SAFE).rstrip(b"=").decode("ascii")


def parse_uuid(text: str) -> Uuid:
    """The id of `format_uuid`'s text; ValueError when it is none."""
    try:
        standard = text.rstrip("=").encode("ascii").translate(_FROM_URL_SAFE)
        uuid = binascii.a2b_base64(standard + b"=" * (-len(standard) % 4))
    except (UnicodeEncodeError, binascii.Error) as error:
        raise ValueError(f"{text!r} is not an id in URL-safe base64") from error
    if len(uuid) != 16:
        raise ValueError(f"{text!r} has {len(uuid)} bytes, not the 16 of an id")
    return uuid
