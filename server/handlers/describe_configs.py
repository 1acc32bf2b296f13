"""DescribeConfigs (32), versions 1-4: every config with its value, source, type, doc and synonyms.

Topics, this broker (by its id), all brokers (the empty name), loggers, client metrics and groups. A resource
type that does not exist fails the whole request, as in Kafka; everything else fails alone.
"""

from __future__ import annotations

from functools import partial

from ottla.config import describe
from ottla.config.broker_change import BrokerLayers
from ottla.config.describe import ConfigEntry
from ottla.config.resources import ResourceType
from ottla.metadata.topic_names import topic_name_error
from ottla.server.broker_layers import broker_layers
from ottla.server.context import RequestContext
from ottla.server.logger_levels import logger_levels
from ottla.server.registry import serves
from ottla.server.turns import map_in_turns
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_TYPES = frozenset(ResourceType) - {ResourceType.UNKNOWN}


@serves(DescribeConfigsRequest)
async def handle_describe_configs(
    ctx: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Configs of topics, brokers, loggers, client metrics and groups, in turns: each has some dozens."""
    if any(resource.resource_type not in _TYPES for resource in request.resources):
        error = KafkaError(ErrorCode.INVALID_REQUEST)
        return DescribeConfigsResponse(results=[_refused(each, error) for each in request.resources])
    layers = broker_layers(ctx.broker)
    describe_one = partial(_result, ctx, request, layers)
    return DescribeConfigsResponse(results=await map_in_turns(describe_one, request.resources))


def _result(
    ctx: RequestContext,
    request: DescribeConfigsRequest,
    layers: BrokerLayers,
    resource: DescribeConfigsResource,
) -> DescribeConfigsResult:
    try:
        entries = _entries(ctx, resource, layers)
    except KafkaError as error:
        return _refused(resource, error)
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_encoded(entry, request) for entry in entries],
    )


def _entries(
    ctx: RequestContext, resource: DescribeConfigsResource, layers: BrokerLayers
) -> list[ConfigEntry]:
    name, names = resource.resource_name, resource.configuration_keys
    stored = ctx.broker.image.configs.get((resource.resource_type, name), {})
    match resource.resource_type:
        case ResourceType.TOPIC:
            problem = topic_name_error(name)
            if problem is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
            if name not in ctx.broker.image.topics_by_name:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
            return describe.describe_topic(stored, layers, names)
        case ResourceType.BROKER:
            if not name:
                return describe.describe_broker_defaults(layers, names)
            _check_broker_id(name, ctx.broker.node_id, " or empty string,")
            return describe.describe_broker(layers, names)
        case ResourceType.BROKER_LOGGER:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
            _check_broker_id(name, ctx.broker.node_id, "")
            return describe.describe_loggers(logger_levels(), names)
        case ResourceType.CLIENT_METRICS:
            if not name:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"
                )
            return describe.describe_client_metrics(stored, names)
        case _:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
            return describe.describe_group(stored, layers, names)


def _check_broker_id(name: str, node_id: int, alternative: str) -> None:
    try:
        asked = int(name)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        ) from None
    if asked != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node_id}{alternative} but received {name}",
        )


def _refused(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def _encoded(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source) for each in synonyms
        ],
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )
