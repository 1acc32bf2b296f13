"""VotersRecord: the voters of a dynamic controller quorum (KIP-853), a control record of the metadata log.

It stands apart because other control records use Kafka's names for its parts as well.
"""

from ottla.wire.schema import (
    INT16,
    INT32,
    STRING,
    UINT16,
    UUID,
    Message,
    array,
    field,
    record,
    struct,
    structure,
)
from ottla.wire.uuids import Uuid


@structure
class Endpoint:
    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)


@structure
class KRaftVersionFeature:
    min_supported_version: int = field(INT16)
    max_supported_version: int = field(INT16)


@structure
class Voter:
    voter_id: int = field(INT32)
    voter_directory_id: Uuid = field(UUID)
    endpoints: list[Endpoint] = array(Endpoint)
    k_raft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)


@record(versions=(0, 0), flexible=0)
class VotersRecord(Message):
    version: int = field(INT16)
    voters: list[Voter] = array(Voter)
