"""Java's .properties format, as server.properties is written."""

import pytest

from ottla.config.definition import ConfigError
from ottla.config.properties import parse_properties_file


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=1\nb:2\nc 3\nd\te", {"a": "1", "b": "2", "c": "3", "d": "e"}),
        ("  a  =  1  \r\nb = : 2", {"a": "1  ", "b": ": 2"}),
        ("# no=1\n  ! no=2\n\n\f\na=#1", {"a": "#1"}),
        ("a=1,\\\n   2,\\\r\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=x\\\n# not a comment", {"a": "x# not a comment"}),
        ("a\\ b\\=c=\\td\\u0041\\q", {"a b=c": "\tdAq"}),
        ("empty\nalso=", {"empty": "", "also": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("a=x\\", {"a": "x"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
        ("", {}),
    ],
)
def test_parse(text: str, properties: dict[str, str]) -> None:
    """The rules of java.util.Properties, one by one."""
    assert parse_properties_file(text) == properties


def test_broken_escape() -> None:
    """A \\u without four hex digits is refused and shown."""
    with pytest.raises(ConfigError, match=r"\\u12x"):
        parse_properties_file("a=\\u12x")
