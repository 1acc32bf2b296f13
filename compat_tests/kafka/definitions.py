"""Kafka's own definitions of its messages, as they lie in the jars, and how ours compare with them.

The definitions are JSON with comments. `differences` lists what a message class of Ottla says otherwise
than Kafka: name, type, versions, nullable versions, tag, tagged versions, default and whether a field is
ignorable.
"""

from __future__ import annotations

import functools
import json
import re
import zipfile
from typing import Any

from compat_tests.kafka.jars import KAFKA_VERSION, kafka_jars
from ottla.wire.fields import FieldSpec, VersionRange, specs_of

Definition = dict[str, Any]
_COMMENT = re.compile(r"^\s*//.*$|\s//.*$", re.MULTILINE)


@functools.cache
def definitions(artifact: str = "kafka-clients") -> dict[str, Definition]:
    """The definitions in one of Kafka's jars, by name."""
    found = {}
    with zipfile.ZipFile(kafka_jars() / f"{artifact}-{KAFKA_VERSION}.jar") as jar:
        for path in jar.namelist():
            if re.fullmatch(r"common/(message|metadata)/\w+\.json", path):
                definition = json.loads(_COMMENT.sub("", jar.read(path).decode()))
                found[definition["name"]] = definition
    for definition in found.values():  # Kafka says it of the request only, and means both
        if definition["type"] == "request" and definition.get("latestVersionUnstable"):
            found[definition["name"].replace("Request", "Response")]["latestVersionUnstable"] = True
    return found


def snake_case(name: str) -> str:
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def inner_fields(definition: Definition, field: Definition) -> list[Definition]:
    """The fields of the structure that a field holds, written in place or among the common ones."""
    if "fields" in field:
        fields: list[Definition] = field["fields"]
        return fields
    name = field["type"].removeprefix("[]")
    return next(shared["fields"] for shared in definition.get("commonStructs", []) if shared["name"] == name)


def is_structure(field: Definition) -> bool:
    return bool(field["type"].removeprefix("[]")[0].isupper())


def differences(cls: type, definition: Definition) -> list[str]:
    """Every difference between a message class and Kafka's definition of it, as sentences."""
    message: Any = cls
    found = []
    valid = VersionRange(definition["validVersions"])
    last = valid.last - 1 if definition.get("latestVersionUnstable") else valid.last
    if (valid.first, last) != (message.MIN_VERSION, message.MAX_VERSION):
        ours = f"{message.MIN_VERSION}-{message.MAX_VERSION}"
        found.append(f"{cls.__name__}: versions {ours}, Kafka has {definition['validVersions']}")
    flexible = VersionRange(definition["flexibleVersions"])
    if (flexible.first if flexible else 32767) != message.FLEXIBLE:
        found.append(f"{cls.__name__}: flexible from {message.FLEXIBLE}, Kafka has {flexible}")
    if definition.get("apiKey", -1) != message.API_KEY:
        found.append(f"{cls.__name__}: api key {message.API_KEY}, Kafka has {definition.get('apiKey')}")
    if message.KIND not in (definition["type"], "data"):
        found.append(f"{cls.__name__}: {message.KIND}, Kafka has {definition['type']}")
    return found + _field_differences(cls.__name__, cls, definition, definition["fields"])


def _field_differences(where: str, cls: type, definition: Definition, fields: list[Definition]) -> list[str]:
    specs = specs_of(cls)
    ours, kafkas = [spec.name for spec in specs], [snake_case(field["name"]) for field in fields]
    if ours != kafkas:
        return [f"{where}: fields {ours}, Kafka has {kafkas}"]
    found = []
    for spec, field in zip(specs, fields, strict=True):
        mine, theirs = _facts_of_spec(spec), _facts_of_definition(field)
        for fact in mine:
            if mine[fact] != theirs[fact]:
                found.append(f"{where}.{spec.name}: {fact} is {mine[fact]!r}, Kafka has {theirs[fact]!r}")
        if is_structure(field) and spec.structure is not None:
            path = f"{where}.{spec.name}"
            found += _field_differences(path, spec.structure, definition, inner_fields(definition, field))
    return found


def _facts_of_spec(spec: FieldSpec) -> dict[str, Any]:
    name = spec.structure.__name__ if spec.structure is not None else spec.kind.name if spec.kind else ""
    default = spec.fresh_default()
    if spec.structure is not None and not spec.is_array and default == spec.structure():
        default = "structure of defaults"
    return {
        "type": f"[]{name}" if spec.is_array else name,
        "versions": repr(spec.versions),
        "nullable": repr(spec.nullable),
        "tag": spec.tag,
        "tagged": repr(spec.tagged),
        "default": default,
        "ignorable": spec.ignorable,
    }


def _facts_of_definition(field: Definition) -> dict[str, Any]:
    return {
        "type": field["type"],
        "versions": repr(VersionRange(field.get("versions") or field["taggedVersions"])),
        "nullable": repr(VersionRange(field.get("nullableVersions", "none"))),
        "tag": field.get("tag"),
        "tagged": repr(VersionRange(field.get("taggedVersions", "none"))),
        "default": _default_of(field),
        "ignorable": field.get("ignorable", False) in (True, "true"),
    }


def _default_of(field: Definition) -> Any:
    kind, default = field["type"], field.get("default")
    if default == "null" or kind == "records":
        return None
    if kind.startswith("[]"):
        return []
    if is_structure(field):
        return "structure of defaults"
    if kind == "bool":
        return str(default).lower() == "true"
    if kind == "float64":
        return float(default or 0)
    if kind == "string":
        return default or ""
    if kind == "bytes":
        return b""
    if kind == "uuid":
        return bytes(16)
    return int(str(default or 0), 0)
