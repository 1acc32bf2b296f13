"""The header of a batch as `wire.records.header.HEADER` unpacks it, and where in that tuple each field is found.

Cleaning looks at every batch of a log twice, and a tuple is all that a small one has time for.
"""

from __future__ import annotations

from typing import Final

Header = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]

BASE_OFFSET: Final = 0
BATCH_LENGTH: Final = 1
LEADER_EPOCH: Final = 2
MAGIC: Final = 3
CRC: Final = 4
ATTRIBUTES: Final = 5
LAST_OFFSET_DELTA: Final = 6
BASE_TIMESTAMP: Final = 7
MAX_TIMESTAMP: Final = 8
PRODUCER_ID: Final = 9
PRODUCER_EPOCH: Final = 10
BASE_SEQUENCE: Final = 11
RECORDS_COUNT: Final = 12
