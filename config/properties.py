"""Reading a Java .properties file, the format of server.properties.

The rules are those of java.util.Properties: `#` and `!` begin a comment line; key and value are separated by
`=`, `:` or white space; a line that ends in an odd number of backslashes goes on in the next one, whose
leading white space falls away; `\\t \\n \\r \\f \\uXXXX` are escapes, any other escaped character stands for
itself; the last of several equal keys wins.
"""

from collections.abc import Iterator
from typing import Final

from ottla.config.definition import ConfigError

_WHITE: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties_file(text: str) -> dict[str, str]:
    """The properties of the text; raises ConfigError for a broken \\u escape."""
    properties = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        properties[_unescape(key)] = _unescape(value)
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    continuing = False
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(_WHITE)
        if not continuing and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        continuing = backslashes % 2 == 1
        if continuing:
            pending += line[:-1]
        else:
            yield pending + line
            pending = ""
    if pending:
        yield pending


def _split(line: str) -> tuple[str, str]:
    """Key and value, both still escaped."""
    end = 0
    while end < len(line) and line[end] not in _WHITE and line[end] not in "=:":
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_WHITE)
    if rest and rest[0] in "=:":
        rest = rest[1:].lstrip(_WHITE)
    return line[:end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    result = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character == "u":
                digits = text[position : position + 4]
                position += 4
                if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                    raise ConfigError(f"The properties file has a broken unicode escape: \\u{digits}")
                character = chr(int(digits, 16))
            else:
                character = _ESCAPES.get(character, character)
        result.append(character)
    return "".join(result)
