"""Random requests that are well-formed but mean nothing, made from the field tables.

Names, ids and numbers are drawn from what exists, what nearly exists and what is extreme; times to wait are
short. The same seed makes the same request.
"""

from __future__ import annotations

import random
from typing import Any

from ottla.wire.fields import FieldSpec, Kind, specs_of
from ottla.wire.records import Codec, Record, build_batch

STRINGS = (
    "",
    ".",
    "..",
    "a/b",
    "x" * 249,
    "x" * 250,
    "x" * 32_000,
    "\0",
    "é" * 100,
    "none",
    "1",
    "-1",
    "__x",
)
CONFIGS = (
    "cleanup.policy",
    "retention.ms",
    "segment.bytes",
    "compression.type",
    "log.retention.ms",
    "compact",
)
EXTREMES = {
    "int8": (-128, -1, 0, 1, 2, 4, 8, 127),
    "int16": (-32768, -2, -1, 0, 1, 3, 32767),
    "uint16": (0, 1, 65535),
    "int32": (-(2**31), -2, -1, 0, 1, 2, 100, 2**31 - 1),
    "uint32": (0, 1, 2**32 - 1),
    "int64": (-(2**63), -6, -5, -4, -3, -2, -1, 0, 1, 5, 2**31, 2**63 - 1),
}
_MANY = ("num_partitions", "count")  # a broker that was asked for a million partitions would make them


class RandomRequests:
    """Draws messages; `names` and `ids` are those of topics that exist."""

    def __init__(self, seed: int, names: list[str], ids: list[bytes]) -> None:
        self._random = random.Random(seed)
        self._names = names
        self._ids = ids

    def draw(self, cls: Any, version: int) -> Any:
        """An instance that the version can carry."""
        values = {}
        for spec in specs_of(cls):
            if version in spec.versions:
                values[spec.name] = self._value(spec, version)
        return cls(**values)

    def _value(self, spec: FieldSpec, version: int) -> Any:
        chance = self._random.random()
        if version in spec.nullable and chance < 0.15:
            return None
        if chance > 0.85:
            return spec.fresh_default()
        if spec.is_array:
            return [self._one(spec, version) for _ in range(self._random.choice((0, 1, 1, 2, 4)))]
        return self._one(spec, version)

    def _one(self, spec: FieldSpec, version: int) -> Any:
        if spec.structure is not None:
            return self.draw(spec.structure, version)
        kind = spec.kind
        assert kind is not None
        if spec.name.endswith("_ms"):
            return self._random.choice((-1, 0, 1, 5))
        if spec.name in _MANY:
            return self._random.choice((-1, 0, 1, 3))
        return self._plain(kind)

    def _plain(self, kind: Kind) -> Any:
        choice = self._random.choice
        if kind.name in EXTREMES:
            return choice(EXTREMES[kind.name])
        if kind.name == "string":
            return choice((*self._names, *self._names, *STRINGS, *CONFIGS))
        if kind.name == "uuid":
            return choice((*self._ids, bytes(16), b"\xff" * 16, bytes(15) + b"\1"))
        if kind.name == "records":
            return self._records()
        if kind.name == "bytes":
            return self._random.randbytes(choice((0, 1, 20)))
        return choice((0.0, -1.0, 1e300)) if kind.name == "float64" else choice((True, False))

    def _records(self) -> bytes:
        """A batch, of which one bit may be wrong."""
        records = [
            Record(offset, 1_700_000_000_000, b"k", b"v") for offset in range(self._random.randint(1, 3))
        ]
        batch = bytearray(build_batch(records, codec=self._random.choice(list(Codec))))
        if self._random.random() < 0.5:
            batch[self._random.randrange(len(batch))] ^= 1 << self._random.randrange(8)
        return bytes(batch)
