"""AlterConfigs (a resource gets exactly these configs) and IncrementalAlterConfigs (set, delete, append,
subtract).

Two passes, as in Kafka. The broker first judges the request: resources and names given twice, null values,
broker configs that cannot change. The controller then judges what is left: the value of each list, the
configs together, whether the resource exists. A resource changes as a whole or not at all, and each is
answered on its own.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Protocol

from ottla.config.broker import BROKER_CONFIGS
from ottla.config.broker_change import BrokerLayers, check_broker_change
from ottla.config.broker_config import BrokerConfig
from ottla.config.definition import ConfigDefinition, ConfigError, ConfigType, to_text
from ottla.config.resources import ResourceType, check_resource_configs
from ottla.config.topics import TOPIC_CONFIGS
from ottla.metadata.controller.plan import Plan, check_size
from ottla.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from ottla.metadata.records import ClearElrRecord, ConfigRecord, MetadataRecord
from ottla.metadata.topic_names import topic_name_error
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.messages import alter_configs, incremental_alter_configs

MAX_VALUE_LENGTH = 32767
MIN_INSYNC_REPLICAS = "min.insync.replicas"

_STORED_TYPES = (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.CLIENT_METRICS, ResourceType.GROUP)
_TYPED_CONFIGS: Mapping[int, Mapping[str, ConfigDefinition]] = {
    TOPIC_RESOURCE: TOPIC_CONFIGS,
    BROKER_RESOURCE: BROKER_CONFIGS,
}


class ConfigOperation(IntEnum):
    """What IncrementalAlterConfigs does with a config."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


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


Changes = dict[str, str | None]
"""New values by config name; None removes."""


def plan_alter_configs(
    image: MetadataImage, request: alter_configs.AlterConfigsRequest, *, node_id: int, config: BrokerConfig
) -> Plan[alter_configs.AlterConfigsResponse]:
    """The plan for an AlterConfigs request."""
    layers = _layers(image, node_id, config)

    def changes_of(resource: alter_configs.AlterConfigsResource) -> Changes:
        _refuse_nulls([entry.name for entry in resource.configs if entry.value is None])
        asked = {entry.name: entry.value or "" for entry in resource.configs}
        if resource.resource_type == BROKER_RESOURCE:
            _check_broker_change(layers, resource.resource_name, asked, node_id)
        present = image.configs.get((resource.resource_type, resource.resource_name), {})
        return {**asked, **{name: None for name in present if name not in asked}}

    records, errors = _plan_resources(image, request.resources, changes_of, layers.effective)
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
    layers = _layers(image, node_id, config)

    def changes_of(resource: incremental_alter_configs.AlterConfigsResource) -> Changes:
        _refuse_nulls(
            [
                entry.name
                for entry in resource.configs
                if entry.value is None and entry.config_operation != ConfigOperation.DELETE
            ]
        )
        present = image.configs.get((resource.resource_type, resource.resource_name), {})
        changes: Changes = {}
        for entry in resource.configs:
            changes[entry.name] = _operate(
                resource.resource_type, entry.name, entry.config_operation, entry.value, present
            )
        if resource.resource_type == BROKER_RESOURCE:
            _check_broker_change(layers, resource.resource_name, _merged(present, changes), node_id)
        return changes

    records, errors = _plan_resources(image, request.resources, changes_of, layers.effective)
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
            if resource.resource_type not in _STORED_TYPES:
                raise _invalid(f"Unknown resource type {resource.resource_type}")
            changes = changes_of(resource)
            _check_change(image, key, changes, config)
        except KafkaError as error:
            errors.append(error)
            continue
        errors.append(None)
        records += _records(image, key, changes)
    check_size(records)
    return records, errors


def _refuse_nulls(names: list[str]) -> None:
    if names:
        raise _invalid(f"Null value not supported for : {', '.join(names)}")


def _layers(image: MetadataImage, node_id: int, config: BrokerConfig) -> BrokerLayers:
    return BrokerLayers(config, image.broker_configs(None), image.broker_configs(node_id))


def _check_broker_change(layers: BrokerLayers, name: str, configs: Mapping[str, str], node_id: int) -> None:
    if name:
        try:
            asked_id = int(name)
        except ValueError:
            raise _invalid(f"Node id must be an integer, but it is: {name}") from None
        if asked_id != node_id:
            raise _invalid(f"Unexpected broker id, expected {node_id}, but received {name}")
    try:
        check_broker_change(layers, configs, per_broker=bool(name))
    except ConfigError as error:
        raise _invalid(str(error)) from None


def _operate(
    resource_type: int, name: str, operation: int, value: str | None, present: Mapping[str, str]
) -> str | None:
    if operation == ConfigOperation.SET:
        return value
    if operation == ConfigOperation.DELETE:
        return None
    if operation not in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
        raise _invalid(f"Unknown operations type {operation}")
    definition = _list_definition(resource_type, name, ConfigOperation(operation))
    before = present.get(name, to_text(definition.default_value) or "")
    parts = [part for part in before.split(",") if part]
    for part in (value or "").split(","):
        if operation == ConfigOperation.SUBTRACT and part in parts:
            parts.remove(part)
        elif operation == ConfigOperation.APPEND and part not in parts:
            parts.append(part)
    return ",".join(parts)


def _list_definition(resource_type: int, name: str, operation: ConfigOperation) -> ConfigDefinition:
    definition = _TYPED_CONFIGS.get(resource_type, {}).get(name)
    if resource_type != BROKER_RESOURCE:
        if definition is None or definition.type is not ConfigType.LIST:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Can't {operation.name} to key {name} because its type is not LIST.",
            )
    elif definition is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
    elif definition.type is not ConfigType.LIST:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Config value {operation.name.lower()} is not allowed for config key: {name}",
        )
    return definition


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
    if resource_type == TOPIC_RESOURCE:
        if not name:
            raise _invalid("Default topic resources are not allowed.")
        problem = topic_name_error(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    present = image.configs.get(key, {})
    merged = _merged(present, changes)
    check_resource_configs(resource_type, merged, name=name, existing=present, broker=config)
    if resource_type == TOPIC_RESOURCE and name not in image.topics_by_name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _check_min_insync_replicas(
    image: MetadataImage, key: tuple[int, str], config_name: str, value: str | None
) -> None:
    """Eligible leader replicas (KIP-966) need the same bound on every broker."""
    resource_type, name = key
    if not image.elr_enabled or resource_type != BROKER_RESOURCE or config_name != MIN_INSYNC_REPLICAS:
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
    records: list[MetadataRecord] = [
        ConfigRecord(resource_type=resource_type, resource_name=name, name=config_name, value=value)
        for config_name, value in changes.items()
        if present.get(config_name) != value or resource_type == BROKER_RESOURCE
    ]
    if image.elr_enabled and any(
        isinstance(record, ConfigRecord) and record.name == MIN_INSYNC_REPLICAS for record in records
    ):
        records.append(ClearElrRecord(topic_name=name if resource_type == TOPIC_RESOURCE else ""))
    return records


def _merged(present: Mapping[str, str], changes: Changes) -> dict[str, str]:
    merged: Changes = {**present, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)
