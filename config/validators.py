"""The rules that configs put on their values, worded as Kafka words them.

Each rule is a small frozen value with `check` and `describe`; which config has which
rule is said in the tables.
"""

import re
from dataclasses import dataclass
from typing import ClassVar

from ottla.config.definition import ConfigError, Value, invalid_value


@dataclass(frozen=True, slots=True)
class Range:
    """A number not below minimum and, if there is one, not above maximum."""

    minimum: int | float
    maximum: int | float | None = None

    def check(self, name: str, value: Value) -> None:
        """Refuse None and numbers outside."""
        if value is None:
            raise invalid_value(name, None, "Value must be non-null")
        if not isinstance(value, int | float):
            raise invalid_value(name, value, "Value must be a number")
        if value < self.minimum:
            raise invalid_value(name, value, f"Value must be at least {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            raise invalid_value(name, value, f"Value must be no more than {self.maximum}")

    def describe(self) -> str:
        """Kafka's notation of a range."""
        return f"[{self.minimum},...]" if self.maximum is None else f"[{self.minimum},...,{self.maximum}]"


def at_least(minimum: int | float) -> Range:
    """A range with no upper end."""
    return Range(minimum)


def between(minimum: int | float, maximum: int | float) -> Range:
    """A range that includes both ends."""
    return Range(minimum, maximum)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few strings."""

    choices: tuple[str, ...]

    def check(self, name: str, value: Value) -> None:
        """Refuse any other string."""
        if value not in self.choices:
            raise invalid_value(name, value, f"String must be one of: {', '.join(self.choices)}")

    def describe(self) -> str:
        """The choices."""
        return f"[{', '.join(self.choices)}]"


@dataclass(frozen=True, slots=True)
class OneOfIgnoringCase:
    """One of a few strings, in any case."""

    choices: tuple[str, ...]

    def check(self, name: str, value: Value) -> None:
        """Refuse any other string."""
        if not isinstance(value, str) or value.upper() not in self.choices:
            raise invalid_value(
                name, value, f"String must be one of (case insensitive): {', '.join(self.choices)}"
            )

    def describe(self) -> str:
        """The choices."""
        return f"(case insensitive) [{', '.join(self.choices)}]"


@dataclass(frozen=True, slots=True)
class ValidList:
    """A list whose elements are not empty and, if there are choices, among them; duplicates fall away."""

    choices: tuple[str, ...] = ()
    empty_allowed: bool = True
    null_allowed: bool = False
    drops_duplicates: ClassVar[bool] = True

    def check(self, name: str, value: Value) -> None:
        """Refuse None, an empty list or empty elements where they are not allowed, and other elements."""
        if value is None:
            if self.null_allowed:
                return
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        assert isinstance(value, tuple)
        if not value and not self.empty_allowed:
            valid = self.describe() or "any non-empty value"
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {valid}")
        for element in value:
            if not element:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if self.choices and element not in self.choices:
                raise invalid_value(name, element, f"String must be one of: {', '.join(self.choices)}")

    def describe(self) -> str:
        """The choices, or nothing."""
        return f"[{', '.join(self.choices)}]" if self.choices else ""


@dataclass(frozen=True, slots=True)
class NonEmpty:
    """A string that is not empty; None passes."""

    def check(self, name: str, value: Value) -> None:
        """Refuse the empty string."""
        if value == "":
            raise invalid_value(name, value, "String must be non-empty")

    def describe(self) -> str:
        """In words."""
        return "non-empty string"


@dataclass(frozen=True, slots=True)
class NonNull:
    """Anything but None."""

    def check(self, name: str, value: Value) -> None:
        """Refuse None."""
        if value is None:
            raise invalid_value(name, None, "entry must be non null")

    def describe(self) -> str:
        """In words."""
        return "non-null string"


@dataclass(frozen=True, slots=True)
class GzipLevel:
    """A gzip level from 1 to 9, or -1 for the library's own choice."""

    def check(self, name: str, value: Value) -> None:
        """Refuse other levels, 0 among them."""
        if not isinstance(value, int) or (value != -1 and not 1 <= value <= 9):
            raise invalid_value(name, value, "Value must be between 1 and 9 or equal to -1")

    def describe(self) -> str:
        """In Kafka's notation."""
        return "[1,...,9] or -1"


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """`*`, or a list of partition:broker pairs."""

    _PAIR: ClassVar[re.Pattern[str]] = re.compile(r"([0-9]+:[0-9]+)?\Z")

    def check(self, name: str, value: Value) -> None:
        """Refuse anything else."""
        elements = [element.strip() for element in value] if isinstance(value, tuple) else []
        if "".join(elements) != "*" and not all(self._PAIR.match(element) for element in elements):
            raise invalid_value(
                name,
                value,
                f"{name} must be the literal '*' or a list of replicas in the following format: "
                f"{self.describe()}",
            )

    def describe(self) -> str:
        """The format."""
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
