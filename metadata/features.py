"""Feature levels (KIP-584): what Ottla supports and which record versions a metadata.version allows.

`SUPPORTED_FEATURES` is the one table behind ApiVersions' supported features, the features of a broker's
registration and the levels written when a data directory is made. Only what Ottla really serves is in it.

A directory that was made before Ottla served a feature has no level of it. The next start gives it the default
level, if its metadata.version is one with which Kafka does so for new directories. Where the last broker knew the
feature and left it off, it stays off.
"""

from collections.abc import Collection, Mapping

from ottla.wire.dataclass import dataclass

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
TRANSACTION_VERSION = "transaction.version"

MINIMUM_METADATA_VERSION = 7  # 3.3-IV3, the oldest that Kafka 4.x replays
LATEST_METADATA_VERSION = 30  # 4.3-IV0, the latest production level of Kafka 4.3

_RELEASES = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
}

_TRANSACTIONS_SINCE = 14
_DIRECTORY_ASSIGNMENT_SINCE = 17
_ELIGIBLE_LEADERS_SINCE = 23
_CORDONED_DIRECTORIES_SINCE = 30


@dataclass(frozen=True, slots=True)
class SupportedFeature:
    """The levels of a feature that Ottla understands, and the one a new directory starts with (0: absent)."""

    min_version: int
    max_version: int
    default_version: int
    since_metadata_version: int = MINIMUM_METADATA_VERSION
    """From here on Kafka gives new directories the default level."""


SUPPORTED_FEATURES: Mapping[str, SupportedFeature] = {
    METADATA_VERSION: SupportedFeature(
        MINIMUM_METADATA_VERSION, LATEST_METADATA_VERSION, LATEST_METADATA_VERSION
    ),
    KRAFT_VERSION: SupportedFeature(0, 1, 0),
    ELIGIBLE_LEADER_REPLICAS_VERSION: SupportedFeature(0, 1, 1, since_metadata_version=26),  # KIP-966
    GROUP_VERSION: SupportedFeature(0, 1, 1, since_metadata_version=22),  # consumer groups (KIP-848)
    TRANSACTION_VERSION: SupportedFeature(0, 2, 2, since_metadata_version=24),  # transactions V2 (KIP-890)
    SHARE_VERSION: SupportedFeature(0, 1, 1, since_metadata_version=28),  # share groups (KIP-932)
}


def missing_features(
    levels: Mapping[str, int], metadata_version: int, known: Collection[str]
) -> dict[str, int]:
    """Levels that a directory lacks because its last broker did not know the features; it knew `known`. Eligible
    leader replicas are for new directories, where their config is set with them."""
    return {
        name: feature.default_version
        for name, feature in SUPPORTED_FEATURES.items()
        if name not in levels
        and name not in known
        and feature.default_version > 0
        and name not in (METADATA_VERSION, ELIGIBLE_LEADER_REPLICAS_VERSION)
        and metadata_version >= feature.since_metadata_version
    }


def finalized_features(levels: Mapping[str, int], kraft_version: int = 0) -> dict[str, int]:
    """The finalized features to tell clients: those in force that Ottla supports.

    A directory that a Kafka left behind may have others in force (streams.version).
    Clients act on what they see here, so a feature that is not served must not be shown.
    """
    told = {
        name: min(level, SUPPORTED_FEATURES[name].max_version)
        for name, level in levels.items()
        if name in SUPPORTED_FEATURES and level > 0
    }
    if kraft_version:
        told[KRAFT_VERSION] = kraft_version
    return told


def release_of(metadata_version: int) -> str:
    """The release name of a metadata.version, such as `4.3-IV0`."""
    return _RELEASES.get(metadata_version, str(metadata_version))


def supports_transactions(metadata_version: int) -> bool:
    """May the log hold begin, end and abort records?"""
    return metadata_version >= _TRANSACTIONS_SINCE


def supports_directories(metadata_version: int) -> bool:
    """Do partitions know the log directory of each replica (KIP-858)?"""
    return metadata_version >= _DIRECTORY_ASSIGNMENT_SINCE


def register_broker_version(metadata_version: int) -> int:
    """The version of RegisterBrokerRecord to write."""
    if metadata_version >= _CORDONED_DIRECTORIES_SINCE:
        return 4
    if metadata_version >= _DIRECTORY_ASSIGNMENT_SINCE:
        return 3
    return 2 if metadata_version >= 8 else 1


def partition_version(metadata_version: int) -> int:
    """The version of PartitionRecord and PartitionChangeRecord to write."""
    if metadata_version >= _ELIGIBLE_LEADERS_SINCE:
        return 2
    return 1 if metadata_version >= _DIRECTORY_ASSIGNMENT_SINCE else 0
