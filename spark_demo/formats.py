"""How events lie in records: JSON with a schema, or Avro with a schema.

A format writes events for the website, whole and broken, and reads and writes them in Spark. Reading adds two
columns to the records: `event`, a struct of the event's fields, and `fits`, whether the bytes fitted the schema.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from typing import Any, Protocol

import fastavro
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.avro.functions import from_avro, to_avro

Event = dict[str, Any]

_CORRUPT = "_corrupt"
_FIELDS = (
    t.StructField("event_id", t.StringType()),
    t.StructField("user_id", t.StringType()),
    t.StructField("type", t.StringType()),
    t.StructField("page", t.StringType()),
    t.StructField("query", t.StringType()),
    t.StructField("event_time_ms", t.LongType()),
)


class Format(Protocol):
    """One way to write an event down."""

    name: str

    def encode(self, event: Event) -> bytes:
        """The value of a record."""

    def encode_broken(self, rng: random.Random, event: Event) -> bytes:
        """A value that a broken sender, or a broken way, would leave of it."""

    def parse(self, records: DataFrame) -> DataFrame:
        """Add `event` and `fits`."""

    def value(self, columns: Sequence[str]) -> Column:
        """The value of a record that carries these columns of a clean event."""


class Json:
    """Documents of JSON; fields may be missing."""

    name = "json"

    def encode(self, event: Event) -> bytes:
        return json.dumps(event).encode()

    def encode_broken(self, rng: random.Random, event: Event) -> bytes:
        kind = rng.randrange(5)
        if kind < 2:
            return _damaged(kind, self.encode(event))
        changes: Sequence[Event] = ({"event_id": None}, {"type": "teleport"}, {"event_time_ms": "yesterday"})
        return self.encode({**event, **changes[kind - 2]})

    def parse(self, records: DataFrame) -> DataFrame:
        schema = t.StructType([*_FIELDS, t.StructField(_CORRUPT, t.StringType())])
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        parsed = records.withColumn("event", f.from_json(f.col("value").cast("string"), schema, options))
        whole = f.col("event").isNotNull() & f.col(f"event.{_CORRUPT}").isNull()
        return parsed.withColumn("fits", whole)

    def value(self, columns: Sequence[str]) -> Column:
        return f.to_json(f.struct(*columns))


class Avro:
    """Avro's binary encoding of a record without the schema, which both sides know."""

    name = "avro"

    def __init__(self) -> None:
        self._schema = _avro_record("Event", [*((field.name, _NULLABLE_STRING) for field in _FIELDS[:-1])])
        self._schema["fields"].append({"name": "event_time_ms", "type": "long"})
        self._parsed = fastavro.parse_schema(self._schema)
        # Somebody who never heard of the newest field.
        self._outdated = fastavro.parse_schema({**self._schema, "fields": self._schema["fields"][:-1]})

    def encode(self, event: Event) -> bytes:
        return _avro_bytes(self._parsed, event)

    def encode_broken(self, rng: random.Random, event: Event) -> bytes:
        kind = rng.randrange(5)
        if kind < 2:
            return _damaged(kind, self.encode(event))
        if kind == 2:
            return _avro_bytes(self._outdated, event)
        changes: Sequence[Event] = ({"event_id": None}, {"type": "teleport"})
        return self.encode({**event, **changes[kind - 3]})

    def parse(self, records: DataFrame) -> DataFrame:
        event = from_avro(f.col("value"), json.dumps(self._schema), {"mode": "PERMISSIVE"})
        parsed = records.withColumn("event", event)
        # What does not fit becomes a struct of nulls; in one that fits this field never is.
        return parsed.withColumn("fits", f.col("event.event_time_ms").isNotNull())

    def value(self, columns: Sequence[str]) -> Column:
        schema = _avro_record(
            "CleanEvent", [(name, _CLEAN_TYPES.get(name, _NULLABLE_STRING)) for name in columns]
        )
        return to_avro(f.struct(*columns), json.dumps(schema))


_NULLABLE_STRING = ["null", "string"]
_CLEAN_TYPES: dict[str, Any] = {
    "event_time": ["null", {"type": "long", "logicalType": "timestamp-micros"}],
    "paying": ["null", "boolean"],
}
FORMATS: dict[str, type[Format]] = {"json": Json, "avro": Avro}


def _avro_record(name: str, fields: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": kind} for field, kind in fields],
    }


def _avro_bytes(schema: Any, event: Event) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, schema, event)
    return buffer.getvalue()


def _damaged(kind: int, value: bytes) -> bytes:
    """Cut off, or something else altogether."""
    return value[: len(value) // 2] if kind == 0 else b"\xff\xfe not even text"
