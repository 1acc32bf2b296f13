"""How the text of a config becomes a value, and what is said when it cannot."""

import pytest

from ottla.config.definition import ConfigError, ConfigType, Value, parse_type, to_text


@pytest.mark.parametrize(
    ("config_type", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.INT, " +7 ", 7),
        (ConfigType.INT, "-2147483648", -(1 << 31)),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, "9223372036854775807", (1 << 63) - 1),
        (ConfigType.DOUBLE, "1d", 1.0),
        (ConfigType.DOUBLE, ".5e1", 5.0),
        (ConfigType.DOUBLE, "-Infinity", float("-inf")),
        (ConfigType.LIST, " a , b,,c ", ("a", "b", "", "c")),
        (ConfigType.LIST, "  ", ()),
        (ConfigType.STRING, " x y ", "x y"),
        (ConfigType.CLASS, "org.example.Some", "org.example.Some"),
        (ConfigType.PASSWORD, " secret", "secret"),
        (ConfigType.INT, None, None),
    ],
)
def test_parse(config_type: ConfigType, text: str | None, value: Value) -> None:
    """Texts that Kafka's ConfigDef accepts have its values."""
    assert parse_type("some.config", text, config_type) == value


@pytest.mark.parametrize(
    ("config_type", "text", "why"),
    [
        (ConfigType.BOOLEAN, "yes", "Expected value to be either true or false"),
        (ConfigType.INT, "1_000", "Not a number of type INT"),
        (ConfigType.INT, "2147483648", "Not a number of type INT"),
        (ConfigType.INT, "", "Not a number of type INT"),
        (ConfigType.SHORT, "32768", "Not a number of type SHORT"),
        (ConfigType.LONG, "1.0", "Not a number of type LONG"),
        (ConfigType.DOUBLE, "inf", "Not a number of type DOUBLE"),
    ],
)
def test_refuse(config_type: ConfigType, text: str, why: str) -> None:
    """Texts that Kafka refuses are refused in its words."""
    with pytest.raises(ConfigError) as caught:
        parse_type("some.config", text, config_type)
    assert str(caught.value) == f"Invalid value {text} for configuration some.config: {why}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (12345678.0, "1.2345678E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (("a", "b"), "a,b"),
        ((), ""),
        (None, None),
    ],
)
def test_to_text(value: Value, text: str | None) -> None:
    """Values are shown as Java shows them."""
    assert to_text(value) == text
