"""Every API key of Kafka, with the versions Kafka 4.3 has of it and the first flexible one.

Flexible versions (KIP-482) have compact lengths and tagged fields in the body, and tagged fields in the
header too. The header of a request must be readable before anything else is known of it, so its threshold
is here and not only with the message. Keys 4 to 7 were removed in Kafka 4.0 and stay reserved; 93 and 94
came after 4.3 and have no versions here.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

NEVER_FLEXIBLE = 32767
"""A first flexible version that no version reaches."""


class ApiKey(IntEnum):
    """Names are Kafka's."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94


class ApiKeyInfo(NamedTuple):
    """What Kafka 4.3 knows of a key; `max_version` is -1 for a key without versions. Unstable versions are
    left out."""

    api_key: ApiKey
    min_version: int
    max_version: int
    first_flexible: int
    on_broker: bool
    on_controller: bool

    @property
    def name(self) -> str:
        """The API's name as people write it, such as `ListOffsets`."""
        return "".join(part.capitalize() for part in self.api_key.name.split("_"))


# key: (min version, max version, first flexible version, B and C for the listeners that serve it)
_VERSIONS: dict[int, tuple[int, int, int, str]] = {
    0: (3, 13, 9, "B"),
    1: (4, 18, 12, "BC"),
    2: (1, 11, 6, "B"),
    3: (0, 13, 9, "B"),
    4: (0, -1, NEVER_FLEXIBLE, ""),
    5: (0, -1, NEVER_FLEXIBLE, ""),
    6: (0, -1, NEVER_FLEXIBLE, ""),
    7: (0, -1, NEVER_FLEXIBLE, ""),
    8: (2, 10, 8, "B"),
    9: (1, 10, 6, "B"),
    10: (0, 6, 3, "B"),
    11: (0, 9, 6, "B"),
    12: (0, 4, 4, "B"),
    13: (0, 5, 4, "B"),
    14: (0, 5, 4, "B"),
    15: (0, 6, 5, "B"),
    16: (0, 5, 3, "B"),
    17: (0, 1, NEVER_FLEXIBLE, "BC"),
    18: (0, 4, 3, "BC"),
    19: (2, 7, 5, "BC"),
    20: (1, 6, 4, "BC"),
    21: (0, 2, 2, "B"),
    22: (0, 5, 2, "B"),
    23: (2, 4, 4, "B"),
    24: (0, 5, 3, "B"),
    25: (0, 4, 3, "B"),
    26: (0, 5, 3, "B"),
    27: (1, 2, 1, "B"),
    28: (0, 5, 3, "B"),
    29: (1, 3, 2, "BC"),
    30: (1, 3, 2, "BC"),
    31: (1, 3, 2, "BC"),
    32: (1, 4, 4, "BC"),
    33: (0, 2, 2, "BC"),
    34: (1, 2, 2, "B"),
    35: (1, 5, 2, "B"),
    36: (0, 2, 2, "BC"),
    37: (0, 3, 2, "BC"),
    38: (1, 3, 2, "BC"),
    39: (1, 2, 2, "BC"),
    40: (1, 2, 2, "BC"),
    41: (1, 3, 2, "BC"),
    42: (0, 2, 2, "B"),
    43: (0, 2, 2, "BC"),
    44: (0, 1, 1, "BC"),
    45: (0, 1, 0, "BC"),
    46: (0, 0, 0, "BC"),
    47: (0, 0, NEVER_FLEXIBLE, "B"),
    48: (0, 1, 1, "B"),
    49: (0, 1, 1, "BC"),
    50: (0, 0, 0, "BC"),
    51: (0, 0, 0, "BC"),
    52: (0, 2, 0, "C"),
    53: (0, 1, 1, "C"),
    54: (0, 1, 1, "C"),
    55: (0, 2, 0, "BC"),
    56: (2, 3, 0, "C"),
    57: (0, 2, 0, "BC"),
    58: (0, 0, 0, "C"),
    59: (0, 1, 0, "C"),
    60: (0, 2, 0, "BC"),
    61: (0, 0, 0, "B"),
    62: (0, 4, 0, "C"),
    63: (0, 2, 0, "C"),
    64: (0, 0, 0, "BC"),
    65: (0, 0, 0, "B"),
    66: (0, 2, 0, "B"),
    67: (0, 0, 0, "C"),
    68: (0, 1, 0, "B"),
    69: (0, 1, 0, "B"),
    70: (0, 0, 0, "C"),
    71: (0, 0, 0, "B"),
    72: (0, 0, 0, "B"),
    73: (0, 0, 0, "C"),
    74: (0, 1, 0, "B"),
    75: (0, 0, 0, "B"),
    76: (1, 1, 0, "B"),
    77: (1, 1, 0, "B"),
    78: (1, 2, 0, "B"),
    79: (1, 2, 0, "B"),
    80: (0, 1, 0, "BC"),
    81: (0, 0, 0, "BC"),
    82: (0, 0, 0, "C"),
    83: (0, 0, 0, "B"),
    84: (0, 0, 0, "B"),
    85: (0, 1, 0, "B"),
    86: (0, 0, 0, "B"),
    87: (0, 1, 0, "B"),
    88: (0, 0, 0, "B"),
    89: (0, 0, 0, "B"),
    90: (0, 1, 0, "B"),
    91: (0, 0, 0, "B"),
    92: (0, 0, 0, "B"),
    93: (0, -1, NEVER_FLEXIBLE, ""),
    94: (0, -1, NEVER_FLEXIBLE, ""),
}

FIRST_FLEXIBLE: dict[int, int] = {key: row[2] for key, row in _VERSIONS.items() if row[1] >= 0}
"""First flexible version by key, of the keys that have versions; looked up for each request header."""


def api_key_info(api_key: ApiKey) -> ApiKeyInfo:
    min_version, max_version, first_flexible, listeners = _VERSIONS[api_key]
    return ApiKeyInfo(api_key, min_version, max_version, first_flexible, "B" in listeners, "C" in listeners)


def api_key_infos() -> list[ApiKeyInfo]:
    """All of them, in the order of the keys."""
    return [api_key_info(api_key) for api_key in ApiKey]
