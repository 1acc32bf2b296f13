"""DescribeCluster (60): cluster id, controller and brokers.

Version 1 asks for brokers or controllers (KIP-919), 2 includes fenced brokers (KIP-1073).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, INT8, INT16, INT32, STRING, Message, array, field, message, structure


@message(api_key=ApiKey.DESCRIBE_CLUSTER, kind="request", versions=(0, 2), flexible=0)
class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool = field(BOOL)
    endpoint_type: int = field(INT8, "1+", default=1)
    include_fenced_brokers: bool = field(BOOL, "2+")


@structure
class DescribeClusterBroker:
    broker_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable="0+", default=None)
    is_fenced: bool = field(BOOL, "2+")


@message(api_key=ApiKey.DESCRIBE_CLUSTER, kind="response", versions=(0, 2), flexible=0)
class DescribeClusterResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    endpoint_type: int = field(INT8, "1+", default=1)
    cluster_id: str = field(STRING)
    controller_id: int = field(INT32, default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = field(INT32, default=-0x80000000)
