"""AlterConfigs (a resource gets exactly these configs) and IncrementalAlterConfigs (set, delete, append,
subtract).

Two passes, as in Kafka. The broker first judges the request: resources and names given twice, null values,
broker configs that cannot change. The controller then judges what is left: the value of each list, the
configs together, whether the resource exists. A resource changes as a whole or not at all, and each is
answered on its own.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ottla.config.broker import BROKER_CONFIGS
from ottla.config.broker_change import BrokerLayers, check_broker_change
from ottla.config.broker_config import BrokerConfig
from ottla.config.definition import ConfigDefinition, ConfigError, ConfigType, to_text
from ottla.config.resources import Operation, ResourceType, check_resource_configs
from ottla.config.topics import TOPIC_CONFIGS
from ottla.metadata.controller.plan import Plan, check_size
from ottla.metadata.image import MetadataImage
from ottla.metadata.records import ClearElrRecord, ConfigRecord, MetadataRecord
from ottla.metadata.topic_names import topic_name_error
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages import alter_configs, incremental_alter_configs

MAX_VALUE_LENGTH = 32767
MIN_INSYNC_REPLICAS = "min.insync.replicas"

_ALTERABLE = (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.CLIENT_METRICS, ResourceType.GROUP)

_LISTS: Mapping[int, Mapping[str, ConfigDefinition]] = {
    ResourceType.TOPIC: TOPIC_CONFIGS,
    ResourceType.BROKER: BROKER_CONFIGS,
}


Changes = dict[str, str | None]
"""New values by config name; None removes."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class _Resource(Protocol):
    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...
    @property
    def configs(self) -> Sequence[_Named]: ...


def plan_alter_configs(
    image: MetadataImage, request: alter_configs.AlterConfigsRequest, *, node_id: int, config: BrokerConfig
) -> Plan[alter_configs.AlterConfigsResponse]:
    """The plan for an AlterConfigs request."""

    def changes_of(resource: alter_configs.AlterConfigsResource) -> Changes:
        _refuse_nulls([entry.name for entry in resource.configs if entry.value is None])
        asked = {entry.name: entry.value or "" for entry in resource.configs}
        if resource.resource_type == ResourceType.BROKER:
            _check_broker(image, resource.resource_name, asked, node_id, config)
        present = image.configs.get((resource.resource_type, resource.resource_name), {})
        return {**asked, **{name: None for name in present if name not in asked}}

    records, errors = _plan_resources(image, request.resources, changes_of, config)
    responses = [
        alter_configs.AlterConfigsResourceResponse(
            error_code=ErrorCode.NONE if error is None else error.code,
            error_message=None if error is None else error.detail,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, error in zip(request.resources, errors, strict=True)
    ]
    return Plan(
        [] if request.validate_only else records, alter_configs.AlterConfigsResponse(responses=responses)
    )


def plan_incremental_alter_configs(
    image: MetadataImage,
    request: incremental_alter_configs.IncrementalAlterConfigsRequest,
    *,
    node_id: int,
    config: BrokerConfig,
) -> Plan[incremental_alter_configs.IncrementalAlterConfigsResponse]:
    """The plan for an IncrementalAlterConfigs request."""

    def changes_of(resource: incremental_alter_configs.AlterConfigsResource) -> Changes:
        _refuse_nulls(
            [
                entry.name
                for entry in resource.configs
                if entry.value is None and entry.config_operation != Operation.DELETE
            ]
        )
        if resource.resource_type == ResourceType.BROKER:
            _check_broker_id(resource.resource_name, node_id)
        present = image.configs.get((resource.resource_type, resource.resource_name), {})
        changes: Changes = {}
        for entry in resource.configs:
            changes[entry.name] = _operate(
                resource.resource_type, entry.name, entry.config_operation, entry.value, present
            )
        if resource.resource_type == ResourceType.BROKER:
            _check_broker(image, resource.resource_name, _merged(present, changes), node_id, config)
        return changes

    records, errors = _plan_resources(image, request.resources, changes_of, config)
    responses = [
        incremental_alter_configs.AlterConfigsResourceResponse(
            error_code=ErrorCode.NONE if error is None else error.code,
            error_message=None if error is None else error.detail,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, error in zip(request.resources, errors, strict=True)
    ]
    return Plan(
        [] if request.validate_only else records,
        incremental_alter_configs.IncrementalAlterConfigsResponse(responses=responses),
    )


def _plan_resources(
    image: MetadataImage,
    resources: Sequence[_Resource],
    changes_of: Callable[..., Changes],
    config: BrokerConfig,
) -> tuple[list[MetadataRecord], list[KafkaError | None]]:
    """The records of every resource that may change, and the error of each that may not."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    records: list[MetadataRecord] = []
    errors: list[KafkaError | None] = []
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        try:
            if times[key] > 1:
                raise _invalid("Each resource must appear at most once.")
            if max(Counter(entry.name for entry in resource.configs).values(), default=0) > 1:
                raise _invalid("Error due to duplicate config keys")
            if resource.resource_type not in _ALTERABLE:
                raise _invalid(f"Unknown resource type {resource.resource_type}")
            changes = changes_of(resource)
            _check_change(image, key, changes, config)
        except KafkaError as error:
            errors.append(error.alone())
            continue
        errors.append(None)
        records += _records(image, key, changes)
    check_size(records)
    return records, errors


# The broker's part ---------------------------------------------------------------------------------------------


def _refuse_nulls(names: list[str]) -> None:
    if names:
        raise _invalid(f"Null value not supported for : {', '.join(names)}")


def _check_broker_id(name: str, node_id: int) -> None:
    if not name:
        return
    try:
        asked_id = int(name)
    except ValueError:
        raise _invalid(f"Node id must be an integer, but it is: {name}") from None
    if asked_id != node_id:
        raise _invalid(f"Unexpected broker id, expected {node_id}, but received {name}")


def _check_broker(
    image: MetadataImage, name: str, configs: Mapping[str, str], node_id: int, config: BrokerConfig
) -> None:
    _check_broker_id(name, node_id)
    layers = BrokerLayers(config, image.broker_configs(None), image.broker_configs(node_id))
    try:
        check_broker_change(layers, configs, per_broker=bool(name))
    except ConfigError as error:
        raise _invalid(str(error)) from None


def _operate(
    resource_type: int, name: str, operation: int, value: str | None, present: Mapping[str, str]
) -> str | None:
    if operation == Operation.SET:
        return value
    if operation == Operation.DELETE:
        return None
    if operation not in (Operation.APPEND, Operation.SUBTRACT):
        raise _invalid(f"Unknown operations type {operation}")
    definition = _list_definition(resource_type, name, Operation(operation))
    before = present.get(name, to_text(definition.default_value) or "")
    elements = [element for element in before.split(",") if element]
    for element in (value or "").split(","):
        if operation == Operation.APPEND and element not in elements:
            elements.append(element)
        elif operation == Operation.SUBTRACT and element in elements:
            elements.remove(element)
    return ",".join(elements)


def _list_definition(resource_type: int, name: str, operation: Operation) -> ConfigDefinition:
    """The definition of a config that APPEND and SUBTRACT may be used on."""
    definition = _LISTS.get(resource_type, {}).get(name)
    if definition is not None and definition.type is ConfigType.LIST:
        return definition
    if resource_type != ResourceType.BROKER:
        detail = f"Can't {operation.name} to key {name} because its type is not LIST."
    elif definition is None:
        detail = f"Unknown config name: {name}"
    else:
        detail = f"Config value {operation.name.lower()} is not allowed for config key: {name}"
    raise KafkaError(ErrorCode.INVALID_CONFIG, detail)


# The controller's part -----------------------------------------------------------------------------------------


def _check_change(image: MetadataImage, key: tuple[int, str], changes: Changes, config: BrokerConfig) -> None:
    resource_type, name = key
    for config_name, value in changes.items():
        _check_min_insync_replicas(image, key, config_name, value)
        if value is not None and len(value) > MAX_VALUE_LENGTH:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{MAX_VALUE_LENGTH} bytes.",
            )
    if resource_type == ResourceType.TOPIC:
        if not name:
            raise _invalid("Default topic resources are not allowed.")
        problem = topic_name_error(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    present = image.configs.get(key, {})
    check_resource_configs(
        resource_type, _merged(present, changes), name=name, existing=present, broker=config
    )
    if resource_type == ResourceType.TOPIC and name not in image.topics_by_name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _check_min_insync_replicas(
    image: MetadataImage, key: tuple[int, str], config_name: str, value: str | None
) -> None:
    """Eligible leader replicas (KIP-966) need the same bound on every broker."""
    resource_type, name = key
    if not image.elr_enabled or resource_type != ResourceType.BROKER or config_name != MIN_INSYNC_REPLICAS:
        return
    if name:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled.",
        )
    if value is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled.",
        )


def _records(image: MetadataImage, key: tuple[int, str], changes: Changes) -> list[MetadataRecord]:
    resource_type, name = key
    present = image.configs.get(key, {})
    changed = {
        config_name: value
        for config_name, value in changes.items()
        if present.get(config_name) != value or resource_type == ResourceType.BROKER
    }
    records: list[MetadataRecord] = [
        ConfigRecord(resource_type=resource_type, resource_name=name, name=config_name, value=value)
        for config_name, value in changed.items()
    ]
    if image.elr_enabled and MIN_INSYNC_REPLICAS in changed:
        records.append(ClearElrRecord(topic_name=name if resource_type == ResourceType.TOPIC else ""))
    return records


def _merged(present: Mapping[str, str], changes: Changes) -> dict[str, str]:
    merged: Changes = {**present, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)
