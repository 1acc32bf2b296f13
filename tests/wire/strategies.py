"""Hypothesis strategies made from the field tables: any message, with values for the fields its version
has.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from ottla.wire.fields import FieldSpec, Kind, specs_of

_BY_KIND: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False, allow_infinity=False),  # JSON, the way to Kafka, has neither
    "bool": st.booleans(),
    "uuid": st.binary(min_size=16, max_size=16),
    # 126 to 128 bytes is where a compact length grows to two bytes
    "string": st.text(max_size=8) | st.integers(126, 129).map("x".__mul__),
    "bytes": st.binary(max_size=16) | st.integers(126, 129).map(b"x".__mul__),
    "records": st.binary(max_size=40) | st.integers(4094, 4098).map(b"x".__mul__),
}


@cache
def instances(cls: Any, version: int) -> st.SearchStrategy[Any]:
    """Instances of a message or structure that differ from the defaults only where the version can say it."""
    fields = {spec.name: _values(spec, version) for spec in specs_of(cls) if version in spec.versions}
    return st.builds(cls, **fields)


def _values(spec: FieldSpec, version: int) -> st.SearchStrategy[Any]:
    values = _element(spec.kind, spec.structure, version)
    if spec.is_array:
        values = st.lists(values, max_size=3)
    if spec.tag is not None and version in spec.tagged:
        values = st.builds(spec.fresh_default) | values
    if version in spec.nullable:
        values = st.none() | values
    return values


def _element(kind: Kind | None, structure: Any, version: int) -> st.SearchStrategy[Any]:
    if structure is not None:
        return instances(structure, version)
    assert kind is not None
    return _BY_KIND[kind.name]
