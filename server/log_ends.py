"""Where a log begins and ends for whoever asks."""

from __future__ import annotations

from ottla.server.partition import Partition

LATEST = -1
EARLIEST = -2

_CONSUMER_REPLICA_ID = -1
_READ_COMMITTED = 1


def end_of_log(
    partition: Partition, timestamp: int, replica_id: int, isolation_level: int
) -> tuple[int, int]:
    """The offset of the LATEST or else of the earliest record, and its leader epoch."""
    if timestamp == LATEST:
        return last_fetchable_offset(partition, replica_id, isolation_level), partition.leader_epoch
    log = partition.log
    epoch = log.leader_epochs.epoch_for_offset(log.log_start_offset)
    return log.log_start_offset, -1 if epoch is None else epoch


def last_fetchable_offset(partition: Partition, replica_id: int, isolation_level: int) -> int:
    """The end of what a consumer may read; a replica or debugger sees the whole log."""
    if replica_id != _CONSUMER_REPLICA_ID:
        return partition.log.log_end_offset
    if isolation_level == _READ_COMMITTED:
        return partition.log.last_stable_offset
    return partition.log.high_watermark
