"""IncrementalAlterConfigs (44), versions 0-1: set, delete, append to or subtract from configs (KIP-339).

Configs of topics, brokers, groups and client metrics are metadata and planned together. Levels of loggers are the
process's own (KIP-412): they are changed here and stored nowhere.
"""

from __future__ import annotations

from collections import Counter

from ottla.config.resources import ResourceType
from ottla.metadata.controller.alter_configs import plan_incremental_alter_configs
from ottla.server.broker_layers import broker_layers
from ottla.server.context import RequestContext
from ottla.server.logger_levels import change_logger_levels, check_node_id
from ottla.server.registry import serves
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@serves(IncrementalAlterConfigsRequest)
async def handle_incremental_alter_configs(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Changes single configs of a topic, broker, logger, group or client metrics subscription."""
    broker = ctx.broker
    static = broker_layers(broker).static
    times = Counter((each.resource_type, each.resource_name) for each in request.resources)
    loggers = [
        each
        for each in request.resources
        if each.resource_type == ResourceType.BROKER_LOGGER
        and times[each.resource_type, each.resource_name] == 1
    ]
    stored = IncrementalAlterConfigsRequest(
        resources=[each for each in request.resources if each not in loggers],
        validate_only=request.validate_only,
    )
    planned = await broker.decide(
        lambda image: plan_incremental_alter_configs(image, stored, node_id=broker.node_id, config=static)
    )
    answers = iter(planned.responses)
    planned.responses = [
        _change_loggers(each, broker.node_id, request.validate_only) if each in loggers else next(answers)
        for each in request.resources
    ]
    return planned


def _change_loggers(
    resource: AlterConfigsResource, node_id: int, validate_only: bool
) -> AlterConfigsResourceResponse:
    answer = AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    try:
        if len({change.name for change in resource.configs}) != len(resource.configs):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        check_node_id(resource.resource_name, node_id)
        change_logger_levels(resource.configs, validate_only=validate_only)
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, error.message
    return answer
