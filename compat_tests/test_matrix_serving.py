"""The loop that the Python drivers of the matrix share."""

import asyncio
import io
import json
import sys
from typing import Any

import pytest

from compat_tests.matrix.drivers.serving import (
    Refused,
    Unsupported,
    answer,
    by_partition,
    decoded,
    encoded,
    error_name,
    serve,
    serve_async,
)


class LibraryError(Exception):
    """What a library raises, with a code of the protocol or without."""

    def __init__(self, code: int | None) -> None:
        super().__init__(f"code {code}")
        self.code = code


class Library:
    """A driver of nothing."""

    def __init__(self) -> None:
        self.closed = False

    def echo(self, **arguments: Any) -> Any:
        print("a library that talks")  # noqa: T201
        return arguments

    def fail(self, code: int | None) -> None:
        raise LibraryError(code)

    def refuse(self, name: str) -> None:
        raise Refused(name, "no")

    def lack(self) -> None:
        raise Unsupported("not with these arguments")

    def refusal(self, error: Exception) -> Refused | None:
        code = error.code if isinstance(error, LibraryError) else None
        return None if code is None else Refused(error_name(code), str(error))

    def close(self) -> None:
        self.closed = True


class AsyncLibrary(Library):
    """The same, awaited."""

    async def wait(self) -> str:
        await asyncio.sleep(0)
        return "waited"

    async def close(self) -> None:  # type: ignore[override]
        self.closed = True


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"call": "echo", "as": "p", "n": 1}, {"ok": {"as": "p", "n": 1}}),
        ({"call": "fail", "code": 3}, {"error": "UNKNOWN_TOPIC_OR_PARTITION", "message": "code 3"}),
        ({"call": "fail", "code": None}, {"error": "LOCAL", "message": "LibraryError: code None"}),
        ({"call": "refuse", "name": "INVALID_CONFIG"}, {"error": "INVALID_CONFIG", "message": "no"}),
        ({"call": "lack"}, {"unsupported": "not with these arguments"}),
        ({"call": "dance"}, {"unsupported": "the library has no dance"}),
        ({"call": "__init__"}, {"unsupported": "the library has no __init__"}),
    ],
)
def test_answers(call: dict[str, Any], expected: dict[str, Any]) -> None:
    """Results, the broker's errors, the library's own, and what it has not."""
    assert answer(Library(), json.dumps(call)) == expected


def test_arguments_that_a_call_does_not_take() -> None:
    """A mistake of a case is told as such, and does not end the driver."""
    found = answer(Library(), json.dumps({"call": "fail", "unknown": 1}))
    assert found["error"] == "LOCAL"
    assert "unknown" in found["message"]


def run(monkeypatch: pytest.MonkeyPatch, calls: list[dict[str, Any]]) -> io.StringIO:
    """Give the calls as input; where the answers will be."""
    answers = io.StringIO()
    lines = "".join(json.dumps(call) + "\n" for call in calls)
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    monkeypatch.setattr(sys, "stdout", answers)
    return answers


def test_one_line_for_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure does not end it, what a library prints is no answer, and the end of the input closes it."""
    answers = run(monkeypatch, [{"call": "echo"}, {"call": "fail", "code": 40}, {"call": "echo", "n": 2}])
    library = Library()
    serve(library)
    assert [json.loads(line) for line in answers.getvalue().splitlines()] == [
        {"ok": {}},
        {"error": "INVALID_CONFIG", "message": "code 40"},
        {"ok": {"n": 2}},
    ]
    assert library.closed


def test_coroutines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls may be awaited, or not."""
    answers = run(monkeypatch, [{"call": "wait"}, {"call": "echo", "n": 1}, {"call": "dance"}])
    library = AsyncLibrary()
    asyncio.run(serve_async(library))
    assert [json.loads(line) for line in answers.getvalue().splitlines()] == [
        {"ok": "waited"},
        {"ok": {"n": 1}},
        {"unsupported": "the library has no dance"},
    ]
    assert library.closed


def test_values() -> None:
    """Bytes are base64 or null, partitions strings, and codes that Kafka has not are the library's."""
    assert [decoded(encoded(data)) for data in (b"\x00\xff", b"", None)] == [b"\x00\xff", b"", None]
    assert by_partition({10: "b", 2: "a"}) == {"2": "a", "10": "b"}
    assert [error_name(code) for code in (0, 3, -1, -185)] == [
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_SERVER_ERROR",
        "LOCAL",
    ]
