"""ListConfigResources (74): the resources that can have configs; in version 0 client metrics only
(KIP-1142).
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import INT8, INT16, INT32, STRING, Message, array, field, message, structure


@message(api_key=ApiKey.LIST_CONFIG_RESOURCES, kind="request", versions=(0, 1), flexible=0)
class ListConfigResourcesRequest(Message):
    resource_types: list[int] = array(INT8, "1+")


@structure
class ConfigResource:
    resource_name: str = field(STRING)
    resource_type: int = field(INT8, "1+", default=16, ignorable=True)


@message(api_key=ApiKey.LIST_CONFIG_RESOURCES, kind="response", versions=(0, 1), flexible=0)
class ListConfigResourcesResponse(Message):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    config_resources: list[ConfigResource] = array(ConfigResource)
