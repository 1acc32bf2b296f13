"""DescribeLogDirs (35), versions 1-5: how much each partition takes in which log directory (KIP-113).

Null means every partition; what is named and not there is left out. 3 adds a top-level error, 4 the size of the
volume and the room left on it (KIP-827), 5 cordoned directories (KIP-1066). Sizes are those of the `.log` files,
as the logs themselves count them; there are no future replicas, and the leader has no lag. A directory that is
offline has KAFKA_STORAGE_ERROR and nothing else.
"""

from __future__ import annotations

import os
from collections import defaultdict

import trio

from ottla.server.context import RequestContext
from ottla.server.partition import Partition
from ottla.server.registry import serves
from ottla.server.turns import map_in_turns
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

Wanted = dict[str, set[int]] | None


async def _partitions_by_directory(
    context: RequestContext, wanted: Wanted
) -> dict[str, list[DescribeLogDirsTopic]]:
    found: defaultdict[str, dict[str, DescribeLogDirsTopic]] = defaultdict(dict)

    def add(partition: Partition) -> None:
        if wanted is not None and partition.index not in wanted.get(partition.topic, ()):
            return
        topics = found[os.path.dirname(partition.log.directory)]
        topic = topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = DescribeLogDirsTopic(name=partition.topic)
        topic.partitions.append(
            DescribeLogDirsPartition(partition_index=partition.index, partition_size=partition.log.size_bytes)
        )

    await map_in_turns(add, list(context.broker.partitions))
    return {directory: list(topics.values()) for directory, topics in found.items()}


def _volume_bytes(directory: str) -> tuple[int, int]:
    volume = os.statvfs(directory)
    return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize


async def _describe(directory: str, topics: list[DescribeLogDirsTopic]) -> DescribeLogDirsResult:
    try:
        # A volume that hangs, such as a network mount, must not hold up the loop.
        total_bytes, usable_bytes = await trio.to_thread.run_sync(_volume_bytes, directory)
    except OSError:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory)
    return DescribeLogDirsResult(
        log_dir=directory, topics=topics, total_bytes=total_bytes, usable_bytes=usable_bytes
    )


@serves(DescribeLogDirsRequest)
async def handle_describe_log_dirs(
    context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Describe every log directory of this broker."""
    wanted: Wanted = None
    if request.topics is not None:
        wanted = {}
        for topic in request.topics:
            wanted.setdefault(topic.topic, set()).update(topic.partitions)
    topics = await _partitions_by_directory(context, wanted)
    directories = [os.path.abspath(directory) for directory in context.broker.config.log_dirs()]
    online = set(context.broker.log_directories)
    return DescribeLogDirsResponse(
        results=[
            await _describe(directory, topics.get(directory, []))
            if directory in online
            else DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory)
            for directory in directories
        ]
    )
