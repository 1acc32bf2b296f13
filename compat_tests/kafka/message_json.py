"""Messages of Ottla in the JSON of Kafka's converters, by the names in Kafka's definitions."""

from __future__ import annotations

import base64
from typing import Any

from compat_tests.kafka.definitions import Definition, inner_fields, is_structure
from ottla.wire.fields import specs_of
from ottla.wire.uuids import format_uuid


def message_json(message: Any, version: int, definition: Definition) -> dict[str, Any]:
    """What `JsonConverter.write` gives for the same message: tagged fields only when they are not the
    default."""
    return _structure_json(message, version, definition, definition["fields"])


def _structure_json(
    message: Any, version: int, definition: Definition, fields: list[Definition]
) -> dict[str, Any]:
    node: dict[str, Any] = {}
    for spec, field in zip(specs_of(type(message)), fields, strict=True):
        value = getattr(message, spec.name)
        if version not in spec.versions or (version in spec.tagged and value == spec.fresh_default()):
            continue
        name = field["name"][0].lower() + field["name"][1:]
        if value is None:
            node[name] = None
        elif is_structure(field):
            inner = inner_fields(definition, field)
            convert = [
                _structure_json(element, version, definition, inner)
                for element in (value if spec.is_array else [value])
            ]
            node[name] = convert if spec.is_array else convert[0]
        elif spec.is_array:
            node[name] = [_primitive_json(field["type"][2:], element) for element in value]
        else:
            node[name] = _primitive_json(field["type"], value)
    return node


def _primitive_json(kind: str, value: Any) -> Any:
    if kind == "uuid":
        return format_uuid(value)
    if kind in ("bytes", "records"):
        return base64.b64encode(value).decode()
    return value


def without_records(node: Any) -> Any:
    """The JSON without records and their sizes, which Kafka's converters do not write out."""
    if isinstance(node, list):
        return [without_records(element) for element in node]
    if isinstance(node, dict):
        hidden = ("records", "recordsSizeInBytes")
        return {name: without_records(value) for name, value in node.items() if name not in hidden}
    return node
