"""Kafka's error table, and the two exceptions of the protocol.

`ErrorCode` is complete for Kafka 4.3. `retriable` is what Kafka's own clients believe: they try again after
a retriable error without telling their user. `KafkaError` is what a client must learn; it is caught per
partition or per request and becomes an error code in the response. `MalformedMessage` means that bytes are
not the message they claim to be: no answer is possible and the connection is closed.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class ErrorCode(IntEnum):
    """The code on the wire, whether clients retry it, and its meaning in a sentence."""

    retriable: bool
    message: str

    # With the code alone, as in ErrorCode(3), it is looked up: the defaults are there for type checkers.
    def __new__(cls, code: int, retriable: bool = False, message: str = "") -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.message = message
        return member

    UNKNOWN_SERVER_ERROR = -1, False, "The server met an error it did not expect."
    NONE = 0, False, ""
    OFFSET_OUT_OF_RANGE = 1, False, "The offset is outside the range that the log holds."
    CORRUPT_MESSAGE = 2, True, "The record batch is corrupt: wrong checksum, size or format."
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "This server has no such topic or partition."
    INVALID_FETCH_SIZE = 4, False, "The fetch size is not valid."
    LEADER_NOT_AVAILABLE = 5, True, "The partition has no leader at the moment."
    NOT_LEADER_OR_FOLLOWER = 6, True, "This broker is not the leader, or not a replica, of the partition."
    REQUEST_TIMED_OUT = 7, True, "The request timed out."
    BROKER_NOT_AVAILABLE = 8, False, "The broker is not available."
    REPLICA_NOT_AVAILABLE = 9, True, "The replica is not available for the partition."
    MESSAGE_TOO_LARGE = 10, False, "The record batch is larger than the server accepts."
    STALE_CONTROLLER_EPOCH = 11, False, "The controller has moved to another broker."
    OFFSET_METADATA_TOO_LARGE = 12, False, "The metadata of the committed offset is too large."
    NETWORK_EXCEPTION = 13, True, "The server disconnected before it answered."
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "The coordinator is still loading."
    COORDINATOR_NOT_AVAILABLE = 15, True, "The coordinator is not available."
    NOT_COORDINATOR = 16, True, "This broker is not the coordinator."
    INVALID_TOPIC_EXCEPTION = 17, False, "The topic name is not valid or the topic may not be used so."
    RECORD_LIST_TOO_LARGE = 18, False, "The record batch is larger than a segment may be."
    NOT_ENOUGH_REPLICAS = 19, True, "Too few replicas are in sync; nothing was written."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, True, "The records were written, but to too few in-sync replicas."
    INVALID_REQUIRED_ACKS = 21, False, "acks must be -1, 0 or 1."
    ILLEGAL_GENERATION = 22, False, "The generation id of the group is not the current one."
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "The member shares no protocol with the rest of the group."
    INVALID_GROUP_ID = 24, False, "The group id is not valid."
    UNKNOWN_MEMBER_ID = 25, False, "The coordinator does not know this member."
    INVALID_SESSION_TIMEOUT = 26, False, "The session timeout is outside the range that the broker allows."
    REBALANCE_IN_PROGRESS = 27, False, "The group is rebalancing; the member has to join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "The size of the committed offset is not valid."
    TOPIC_AUTHORIZATION_FAILED = 29, False, "Access to the topic is denied."
    GROUP_AUTHORIZATION_FAILED = 30, False, "Access to the group is denied."
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "Access to the cluster is denied."
    INVALID_TIMESTAMP = 32, False, "The timestamp of a record is out of the accepted range."
    UNSUPPORTED_SASL_MECHANISM = 33, False, "The SASL mechanism is not enabled here."
    ILLEGAL_SASL_STATE = 34, False, "The request does not fit the state of the SASL exchange."
    UNSUPPORTED_VERSION = 35, False, "This version of the API is not supported."
    TOPIC_ALREADY_EXISTS = 36, False, "A topic of this name exists already."
    INVALID_PARTITIONS = 37, False, "The number of partitions is not valid."
    INVALID_REPLICATION_FACTOR = 38, False, "The replication factor is below 1 or above the broker count."
    INVALID_REPLICA_ASSIGNMENT = 39, False, "The replica assignment is not valid."
    INVALID_CONFIG = 40, False, "The configuration is not valid."
    NOT_CONTROLLER = 41, True, "This node is not the controller."
    INVALID_REQUEST = 42, False, "The request contradicts itself or the protocol."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "The message format of the partition cannot serve this."
    POLICY_VIOLATION = 44, False, "The request breaks the configured policy."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "The producer's sequence number does not follow the last one."
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "The producer's sequence number was seen before."
    INVALID_PRODUCER_EPOCH = 47, False, "The producer's epoch is older than the current one."
    INVALID_TXN_STATE = 48, False, "The operation does not fit the state of the transaction."
    INVALID_PRODUCER_ID_MAPPING = 49, False, "The producer id does not belong to the transactional id."
    INVALID_TRANSACTION_TIMEOUT = 50, False, "The transaction timeout is above transaction.max.timeout.ms."
    CONCURRENT_TRANSACTIONS = 51, True, "Another operation on the same transaction is under way."
    TRANSACTION_COORDINATOR_FENCED = 52, False, "The transaction coordinator is no longer the current one."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "Access to the transactional id is denied."
    SECURITY_DISABLED = 54, False, "Security features are switched off."
    OPERATION_NOT_ATTEMPTED = 55, False, "The operation was left out because another one failed."
    KAFKA_STORAGE_ERROR = 56, True, "A disk error in the log directory."
    LOG_DIR_NOT_FOUND = 57, False, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, False, "SASL authentication failed."
    UNKNOWN_PRODUCER_ID = 59, False, "The broker knows nothing, or nothing any more, of this producer id."
    REASSIGNMENT_IN_PROGRESS = 60, False, "A reassignment of the partition is under way."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "Delegation tokens are switched off."
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "The server has no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "The principal neither owns nor may renew the token."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, False, "Tokens cannot be had over this kind of connection."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "Access to the delegation token is denied."
    DELEGATION_TOKEN_EXPIRED = 66, False, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, False, "The type of the principal is not supported."
    NON_EMPTY_GROUP = 68, False, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, False, "There is no group of this id."
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "There is no fetch session of this id."
    INVALID_FETCH_SESSION_EPOCH = 71, True, "The epoch of the fetch session is not the expected one."
    LISTENER_NOT_FOUND = 72, True, "The leader has no listener of the kind the request came in by."
    TOPIC_DELETION_DISABLED = 73, False, "Deleting topics is switched off."
    FENCED_LEADER_EPOCH = 74, True, "The leader epoch of the request is older than the broker's."
    UNKNOWN_LEADER_EPOCH = 75, True, "The leader epoch of the request is newer than the broker's."
    UNSUPPORTED_COMPRESSION_TYPE = 76, False, "The compression is not supported in this request version."
    STALE_BROKER_EPOCH = 77, False, "The broker epoch has changed."
    OFFSET_NOT_AVAILABLE = 78, True, "The new leader's high watermark has not caught up yet."
    MEMBER_ID_REQUIRED = 79, False, "The member has to join again with the member id it was given."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "The preferred leader is not available."
    GROUP_MAX_SIZE_REACHED = 81, False, "The group is full."
    FENCED_INSTANCE_ID = 82, False, "Another member has taken over this group.instance.id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "No replica that may lead the partition is available."
    ELECTION_NOT_NEEDED = 84, True, "The partition needs no leader election."
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "No reassignment of the partition is under way."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "The group is subscribed to the topic, so its offsets stay."
    INVALID_RECORD = 87, False, "A record failed validation."
    UNSTABLE_OFFSET_COMMIT = 88, True, "Offsets of an open transaction are pending."
    THROTTLING_QUOTA_EXCEEDED = 89, True, "The quota is exceeded."
    PRODUCER_FENCED = 90, False, "A newer producer uses the same transactional id."
    RESOURCE_NOT_FOUND = 91, False, "The resource does not exist."
    DUPLICATE_RESOURCE = 92, False, "The request names the same resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, False, "The credential does not meet the requirements."
    INCONSISTENT_VOTER_SET = 94, False, "Sender or receiver is not one of the expected voters."
    INVALID_UPDATE_VERSION = 95, False, "The version of the update is not valid."
    FEATURE_UPDATE_FAILED = 96, False, "The finalized features could not be updated."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, False, "The principal of a forwarded request could not be read."
    SNAPSHOT_NOT_FOUND = 98, False, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, False, "The position is outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, True, "This server has no topic of this id."
    DUPLICATE_BROKER_REGISTRATION = 101, False, "The broker id is in use already."
    BROKER_ID_NOT_REGISTERED = 102, False, "No broker of this id is registered."
    INCONSISTENT_TOPIC_ID = 103, True, "The topic id of the log is not that of the request."
    INCONSISTENT_CLUSTER_ID = 104, False, "The cluster id of the request is not that of the server."
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "The fetch session mixes requests with and without topic ids."
    INELIGIBLE_REPLICA = 107, False, "The new ISR has a replica that may not be in it."
    NEW_LEADER_ELECTED = 108, False, "The partition was altered, and has a new leader."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "The offset is in tiered storage now."
    FENCED_MEMBER_EPOCH = 110, False, "The member is fenced; it has to give up its partitions and join again."
    UNRELEASED_INSTANCE_ID = 111, False, "Another member still holds the instance id."
    UNSUPPORTED_ASSIGNOR = 112, False, "The group does not support the assignor."
    STALE_MEMBER_EPOCH = 113, False, "The member epoch is stale; a heartbeat brings the new one."
    MISMATCHED_ENDPOINT_TYPE = 114, False, "The request came to an endpoint of the wrong type."
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "This type of endpoint is not supported."
    UNKNOWN_CONTROLLER_ID = 116, False, "No controller of this id is known."
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "The telemetry subscription id is not valid, or no longer."
    TELEMETRY_TOO_LARGE = 118, False, "The telemetry is larger than the broker accepts."
    INVALID_REGISTRATION = 119, False, "The controller found the broker's registration not valid."
    TRANSACTION_ABORTABLE = 120, False, "The transaction failed; abort it and go on with the same id."
    INVALID_RECORD_STATE = 121, False, "The record's state does not allow this acknowledgement."
    SHARE_SESSION_NOT_FOUND = 122, True, "There is no such share session."
    INVALID_SHARE_SESSION_EPOCH = 123, True, "The epoch of the share session is not the expected one."
    FENCED_STATE_EPOCH = 124, False, "The state epoch of the share group does not match."
    INVALID_VOTER_KEY = 125, False, "The voter key is not that of the receiving replica."
    DUPLICATE_VOTER = 126, False, "The voter is in the set of voters already."
    VOTER_NOT_FOUND = 127, False, "The voter is not in the set of voters."
    INVALID_REGULAR_EXPRESSION = 128, False, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = 129, False, "The client has to start again from its bootstrap servers."
    STREAMS_INVALID_TOPOLOGY = 130, False, "The topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "The epoch of the topology is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, False, "The topology is outdated."
    SHARE_SESSION_LIMIT_REACHED = 133, True, "No more share sessions can be opened."


MAX_DETAIL_CHARACTERS = 8000
"""No text of so many has more bytes than a string of the protocol can."""


class KafkaError(Exception):
    """What a client must learn: an error code, and a sentence of its own where the table's does not say
    enough. The sentence may quote what the client sent, so its length is bounded here."""

    def __init__(self, code: ErrorCode, detail: str | None = None) -> None:
        if detail is not None and len(detail) > MAX_DETAIL_CHARACTERS:
            detail = detail[: MAX_DETAIL_CHARACTERS - 3] + "..."
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    @property
    def message(self) -> str:
        return self.code.message if self.detail is None else self.detail

    def alone(self) -> Self:
        """Itself, without what led to it: to be kept where that leads to, which would be a circle."""
        self.__context__ = None
        return self.with_traceback(None)

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


class NotOrdinary(Exception):
    """A message for the codecs that can read and write every one, not for the quick ones of the common case."""


class MalformedMessage(ValueError):
    """Bytes that are not the message they should be; `path` names the field, such as
    `topics[3].partitions`."""

    def __init__(self, detail: str, path: str = "") -> None:
        super().__init__(detail, path)
        self.detail = detail
        self.path = path

    def within(self, outer: str) -> MalformedMessage:
        """The same error seen from the structure around: `outer` goes in front of the path."""
        if not outer:
            return self
        if not self.path or self.path.startswith("["):
            return MalformedMessage(self.detail, outer + self.path)
        return MalformedMessage(self.detail, f"{outer}.{self.path}")

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}" if self.path else self.detail


class TooManyElements(MalformedMessage):
    """A message whose arrays have more elements than it may have, or than its decoder was ready for."""
