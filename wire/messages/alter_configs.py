"""AlterConfigs (33): replace all configs of a resource. IncrementalAlterConfigs is what clients use today.

Version 2 is flexible.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, INT8, INT16, INT32, STRING, Message, array, field, message, structure


@structure
class AlterableConfig:
    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")


@structure
class AlterConfigsResource:
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configs: list[AlterableConfig] = array(AlterableConfig)


@message(api_key=ApiKey.ALTER_CONFIGS, kind="request", versions=(0, 2), flexible=2)
class AlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = field(BOOL)


@structure
class AlterConfigsResourceResponse:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)


@message(api_key=ApiKey.ALTER_CONFIGS, kind="response", versions=(0, 2), flexible=2)
class AlterConfigsResponse(Message):
    throttle_time_ms: int = field(INT32)
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
