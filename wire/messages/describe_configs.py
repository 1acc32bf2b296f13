"""DescribeConfigs (32): the configs of topics, brokers, loggers, clients and groups with their sources.

Version 1 has synonyms, 3 the type and documentation (KIP-569), 4 is flexible.
"""

from __future__ import annotations

from ottla.wire.api_keys import ApiKey
from ottla.wire.schema import BOOL, INT8, INT16, INT32, STRING, Message, array, field, message, structure


@structure
class DescribeConfigsResource:
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configuration_keys: list[str] | None = array(STRING, nullable="0+")


@message(api_key=ApiKey.DESCRIBE_CONFIGS, kind="request", versions=(1, 4), flexible=4)
class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = field(BOOL, "1+")
    include_documentation: bool = field(BOOL, "3+")


@structure
class DescribeConfigsSynonym:
    name: str = field(STRING, "1+")
    value: str | None = field(STRING, "1+", nullable="0+")
    source: int = field(INT8, "1+")


@structure
class DescribeConfigsResourceResult:
    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")
    read_only: bool = field(BOOL)
    config_source: int = field(INT8, "1+", default=-1, ignorable=True)
    is_sensitive: bool = field(BOOL)
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, "1+", ignorable=True)
    config_type: int = field(INT8, "3+", ignorable=True)
    documentation: str | None = field(STRING, "3+", nullable="0+", ignorable=True)


@structure
class DescribeConfigsResult:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


@message(api_key=ApiKey.DESCRIBE_CONFIGS, kind="response", versions=(1, 4), flexible=4)
class DescribeConfigsResponse(Message):
    throttle_time_ms: int = field(INT32)
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
