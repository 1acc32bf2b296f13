"""The rules that configs put on their values, worded as Kafka words them.

Each rule is a small value with `check` and `describe`; which config has which rule is said in the tables. They
are plain classes because dataclasses would take a good part of the time in which a broker starts.
"""

import re
from typing import ClassVar, Final

from ottla.config.definition import ConfigError, Value, invalid_value

_PAIR: Final = r"([0-9]+:[0-9]+)?"


class Range:
    """A number not below minimum and, if there is one, not above maximum."""

    __slots__ = ("maximum", "minimum")

    def __init__(self, minimum: int | float, maximum: int | float | None = None) -> None:
        self.minimum: Final = minimum
        self.maximum: Final = maximum

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


class OneOf:
    """One of a few strings."""

    __slots__ = ("choices",)

    def __init__(self, choices: tuple[str, ...]) -> None:
        self.choices: Final = choices

    def check(self, name: str, value: Value) -> None:
        """Refuse any other string."""
        if value not in self.choices:
            raise invalid_value(name, value, f"String must be one of: {', '.join(self.choices)}")

    def describe(self) -> str:
        """The choices."""
        return f"[{', '.join(self.choices)}]"


class OneOfIgnoringCase:
    """One of a few strings, in any case."""

    __slots__ = ("choices",)

    def __init__(self, choices: tuple[str, ...]) -> None:
        self.choices: Final = choices

    def check(self, name: str, value: Value) -> None:
        """Refuse any other string."""
        if not isinstance(value, str) or value.upper() not in self.choices:
            raise invalid_value(
                name, value, f"String must be one of (case insensitive): {', '.join(self.choices)}"
            )

    def describe(self) -> str:
        """The choices."""
        return f"(case insensitive) [{', '.join(self.choices)}]"


class ValidList:
    """A list whose elements are not empty and, if there are choices, among them; duplicates fall away."""

    __slots__ = ("choices", "empty_allowed", "null_allowed")
    drops_duplicates: ClassVar[bool] = True

    def __init__(
        self, choices: tuple[str, ...] = (), *, empty_allowed: bool = True, null_allowed: bool = False
    ) -> None:
        self.choices: Final = choices
        self.empty_allowed: Final = empty_allowed
        self.null_allowed: Final = null_allowed

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


class NonEmpty:
    """A string that is not empty; None passes."""

    __slots__ = ()

    def check(self, name: str, value: Value) -> None:
        """Refuse the empty string."""
        if value == "":
            raise invalid_value(name, value, "String must be non-empty")

    def describe(self) -> str:
        """In words."""
        return "non-empty string"


class NonNull:
    """Anything but None."""

    __slots__ = ()

    def check(self, name: str, value: Value) -> None:
        """Refuse None."""
        if value is None:
            raise invalid_value(name, None, "entry must be non null")

    def describe(self) -> str:
        """In words."""
        return "non-null string"


class GzipLevel:
    """A gzip level from 1 to 9, or -1 for the library's own choice."""

    __slots__ = ()

    def check(self, name: str, value: Value) -> None:
        """Refuse other levels, 0 among them."""
        if not isinstance(value, int) or (value != -1 and not 1 <= value <= 9):
            raise invalid_value(name, value, "Value must be between 1 and 9 or equal to -1")

    def describe(self) -> str:
        """In Kafka's notation."""
        return "[1,...,9] or -1"


class ThrottledReplicas:
    """`*`, or a list of partition:broker pairs."""

    __slots__ = ()

    def check(self, name: str, value: Value) -> None:
        """Refuse anything else."""
        elements = [element.strip() for element in value] if isinstance(value, tuple) else []
        if "".join(elements) != "*" and not all(re.fullmatch(_PAIR, element) for element in elements):
            raise invalid_value(
                name,
                value,
                f"{name} must be the literal '*' or a list of replicas in the following format: "
                f"{self.describe()}",
            )

    def describe(self) -> str:
        """The format."""
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
