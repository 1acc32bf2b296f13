"""ElectLeaders (43), versions 0-2: elect the preferred leaders, or from 1 on any live one at the risk of losing
records (KIP-183, KIP-460).

Null means all partitions; those that need no election are then left out of the answer, while a named one is
answered with ELECTION_NOT_NEEDED. An unknown election type is INVALID_REQUEST. A timeout of 0 or less is
REQUEST_TIMED_OUT, as in KRaft.
"""

from __future__ import annotations

from ottla.metadata.controller.elect_leaders import plan_elect_leaders
from ottla.server.context import RequestContext
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


def _refuse(request: ElectLeadersRequest, error: KafkaError, version: int) -> ElectLeadersResponse:
    results = [
        ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[
                PartitionResult(partition_id=partition, error_code=error.code, error_message=error.detail)
                for partition in topic.partitions
            ],
        )
        for topic in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(
        error_code=error.code if version >= 1 else 0, replica_election_results=results
    )


@serves(ElectLeadersRequest)
async def handle_elect_leaders(context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Have the controller decide."""
    try:
        if request.timeout_ms <= 0:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        return await context.broker.decide(lambda image: plan_elect_leaders(image, request))
    except KafkaError as error:
        return _refuse(request, error, context.api_version)
