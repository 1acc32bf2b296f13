"""What a config is: its type, default, rules, and how its text becomes a value.

The parsing rules are those of Kafka's ConfigDef: text is trimmed as Java trims, numbers are what
Integer.parseInt and its kin accept, a list is split at commas, and a value that fails is reported as
"Invalid value X for configuration N: why". A CLASS value is a Java class name; Ottla never loads one, so any
name is accepted and kept as text. The numbers of ConfigType are those of DescribeConfigs (KIP-569).
"""

import re
from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Final, Protocol

from ottla.wire.dataclass import dataclass

Value = bool | int | float | str | tuple[str, ...] | None

_JAVA_WHITESPACE: Final = "".join(map(chr, range(0x21)))
_INTEGER: Final = r"[+-]?\d+"
_DECIMAL: Final = r"([+-]?)(NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)"
_COMMA: Final = r"\s*,\s*"


class ConfigError(ValueError):
    """A config that cannot be used; the message names it in one sentence."""


class ConfigType(IntEnum):
    """The type of a config's value, numbered as on the wire."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(Enum):
    """How much a config matters, for the documentation."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class UpdateMode(Enum):
    """Where a broker config may be changed while the broker runs (KIP-226)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class NoDefault(Enum):
    """Marks a config that must be given."""

    NO_DEFAULT = "no default"


NO_DEFAULT: Final = NoDefault.NO_DEFAULT


class Validator(Protocol):
    """A rule on a parsed value, beyond its type."""

    def check(self, name: str, value: Value) -> None:
        """Raise ConfigError if the value breaks the rule."""

    def describe(self) -> str:
        """The valid values, for people."""


@dataclass(slots=True, eq=False)
class ConfigDefinition:
    """One row of the table."""

    name: str
    type: ConfigType
    default: Value | NoDefault
    doc: str
    validator: Validator | None = None
    importance: Importance = Importance.MEDIUM
    internal: bool = False
    mode: UpdateMode = UpdateMode.READ_ONLY
    in_effect: bool = False

    @property
    def is_sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.type is ConfigType.PASSWORD

    @property
    def default_value(self) -> Value:
        """The default, None where there is none."""
        return None if isinstance(self.default, NoDefault) else self.default

    def parse(self, text: str | None) -> Value:
        """The value of this text, checked; raises ConfigError."""
        value = parse_type(self.name, text, self.type)
        if self.validator is not None:
            if isinstance(value, tuple) and getattr(self.validator, "drops_duplicates", False):
                value = tuple(dict.fromkeys(value))
            self.validator.check(self.name, value)
        return value


def invalid_value(name: str, value: object, why: str) -> ConfigError:
    """The error for a value that fails, worded as Kafka words it."""
    return ConfigError(f"Invalid value {_java_text(value)} for configuration {name}: {why}")


def parse_type(name: str, text: str | None, config_type: ConfigType) -> Value:
    """Turn text into a value of the type, without any further rule."""
    if text is None:
        return None
    trimmed = text.strip(_JAVA_WHITESPACE)
    match config_type:
        case ConfigType.BOOLEAN:
            lowered = trimmed.lower()
            if lowered not in ("true", "false"):
                raise invalid_value(name, text, "Expected value to be either true or false")
            return lowered == "true"
        case ConfigType.INT:
            return _parse_integer(name, text, trimmed, 31, "INT")
        case ConfigType.SHORT:
            return _parse_integer(name, text, trimmed, 15, "SHORT")
        case ConfigType.LONG:
            return _parse_integer(name, text, trimmed, 63, "LONG")
        case ConfigType.DOUBLE:
            return _parse_double(name, text, trimmed)
        case ConfigType.LIST:
            return tuple(re.split(_COMMA, trimmed)) if trimmed else ()
        case _:
            return trimmed


def _parse_integer(name: str, text: str, trimmed: str, bits: int, type_name: str) -> int:
    if re.fullmatch(_INTEGER, trimmed):
        value = int(trimmed)
        if -(1 << bits) <= value < 1 << bits:
            return value
    raise invalid_value(name, text, f"Not a number of type {type_name}")


def _parse_double(name: str, text: str, trimmed: str) -> float:
    found = re.fullmatch(_DECIMAL, trimmed)
    if found is None:
        raise invalid_value(name, text, "Not a number of type DOUBLE")
    return float(found.group(1) + found.group(2).rstrip("fFdD"))


def to_text(value: Value) -> str | None:
    """The text of a value, as DescribeConfigs shows it."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return ",".join(value)
    return _java_text(value)


def _java_text(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _java_double(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(value) + "]"
    return str(value)


def _java_double(value: float) -> str:
    """A double as Java prints it: plain from 1e-3 up to 1e7, otherwise like 1.5E-5."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return f"{value:.17g}" if "e" in repr(value) else repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e") if "e" in repr(value) else _scientific(value)
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"


def _scientific(value: float) -> tuple[str, str, str]:
    digits = next(d for d in range(17) if float(f"{value:.{d}e}") == value)
    return f"{value:.{digits}e}".partition("e")


def by_name(*rows: ConfigDefinition) -> Mapping[str, ConfigDefinition]:
    """A table from its rows; a name may appear once."""
    table = {row.name: row for row in rows}
    if len(table) != len(rows):
        raise ValueError("a config is defined twice")
    return table
