"""The control records of the metadata log and its snapshots (KIP-595, KIP-630, KIP-853).

They say who leads the quorum and who votes in it, and where a snapshot begins and ends. In the log they
stand in control batches between the metadata records and take an offset each. Each value begins with its own
version.
"""

from ottla.wire.schema import (
    INT16,
    INT32,
    INT64,
    UUID,
    Message,
    array,
    field,
    record,
    structure,
)
from ottla.wire.uuids import Uuid


@structure
class Voter:
    voter_id: int = field(INT32)
    voter_directory_id: Uuid = field(UUID, "1+")


@record(versions=(0, 1), flexible=0)
class LeaderChangeMessage(Message):
    version: int = field(INT16)
    leader_id: int = field(INT32)
    voters: list[Voter] = array(Voter)
    granting_voters: list[Voter] = array(Voter)


@record(versions=(0, 0), flexible=0)
class SnapshotHeaderRecord(Message):
    version: int = field(INT16)
    last_contained_log_timestamp: int = field(INT64)


@record(versions=(0, 0), flexible=0)
class SnapshotFooterRecord(Message):
    version: int = field(INT16)


@record(versions=(0, 0), flexible=0)
class KRaftVersionRecord(Message):
    version: int = field(INT16)
    k_raft_version: int = field(INT16)
