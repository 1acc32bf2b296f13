"""What all drivers in Python share: lines in, lines out, and what an exception is called.

A driver is a class with a method for each call that its library has, named as the call; the arguments of the call are
its keyword arguments, and what it returns is the result. `serve` reads the calls and answers them one by one, and
calls `close` when there are no more. The methods of a driver may be coroutines: then `serve_async` is for it,
which keeps the event loop turning while it waits for a call, as heartbeats need it.

What goes wrong is said by exceptions: `Unsupported` for what the library has not, `Refused` for a code of the protocol,
and for the library's own exceptions `refusal` of the driver, which makes a `Refused` of those that carry such a code
and None of the others; those are LOCAL.
"""

import asyncio
import base64
import inspect
import json
import sys
import traceback
from typing import IO, Any, Protocol

from ottla.wire.errors import ErrorCode

# Below the 30 seconds that any call may take.
PATIENCE_SECONDS = 20.0
PATIENCE_MS = 20_000

Call = dict[str, Any]
Answer = dict[str, Any]


class Unsupported(Exception):
    """The library has no such call, or not with these arguments."""


class Refused(Exception):
    """The broker said no; `name` is what Kafka calls the code."""

    def __init__(self, name: str, message: str = "") -> None:
        super().__init__(message)
        self.name = name


class Driver(Protocol):
    """What `serve` needs besides the methods of the calls."""

    def refusal(self, error: Exception) -> Refused | None:
        """What the broker answered, if that is what this exception of the library tells."""


def error_name(code: int) -> str:
    """What Kafka calls an error code, LOCAL for codes that are not Kafka's."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return "LOCAL"


def encoded(data: bytes | None) -> str | None:
    """Bytes for an answer."""
    return None if data is None else base64.b64encode(data).decode()


def decoded(text: str | None) -> bytes | None:
    """Bytes of a call."""
    return None if text is None else base64.b64decode(text)


def by_partition(partitions: dict[int, Any]) -> dict[str, Any]:
    """An object of partitions: JSON has only strings as keys."""
    return {str(partition): partitions[partition] for partition in sorted(partitions)}


def failure(driver: Driver, error: Exception) -> Answer:
    """How an exception is answered."""
    if isinstance(error, Unsupported):
        return {"unsupported": str(error)}
    refused = error if isinstance(error, Refused) else driver.refusal(error)
    if refused is not None:
        return {"error": refused.name, "message": str(refused)}
    traceback.print_exception(error, limit=-4)  # to standard error, for whoever writes a driver or a case
    return {"error": "LOCAL", "message": f"{type(error).__name__}: {error}"}


def _method(driver: Driver, call: Call) -> Any:
    name = call.pop("call")
    method = None if name.startswith("_") else getattr(driver, name, None)
    if method is None:
        raise Unsupported(f"the library has no {name}")
    return method


def answer(driver: Driver, line: str) -> Answer:
    """Make one call."""
    call = json.loads(line)
    try:
        return {"ok": _method(driver, call)(**call)}
    except Exception as error:  # noqa: BLE001 - whatever a library raises is its answer to the call
        return failure(driver, error)


async def answer_async(driver: Driver, line: str) -> Answer:
    """Make one call of a driver whose methods may be coroutines."""
    call = json.loads(line)
    try:
        result = _method(driver, call)(**call)
        return {"ok": await result if inspect.isawaitable(result) else result}
    except Exception as error:  # noqa: BLE001 - whatever a library raises is its answer to the call
        return failure(driver, error)


def _take_output() -> IO[str]:
    """Standard output for the answers alone: what else is printed goes to standard error."""
    answers = sys.stdout
    sys.stdout = sys.stderr
    return answers


def _tell(answers: IO[str], found: Answer) -> None:
    answers.write(json.dumps(found, separators=(",", ":")) + "\n")
    answers.flush()


def serve(driver: Any) -> None:
    """Answer the calls on standard input until it ends."""
    answers = _take_output()
    try:
        for line in sys.stdin:
            _tell(answers, answer(driver, line))
    finally:
        driver.close()


async def serve_async(driver: Any) -> None:
    """The same, in an event loop that goes on while no call is under way."""
    answers = _take_output()
    try:
        while line := await asyncio.to_thread(sys.stdin.readline):
            _tell(answers, await answer_async(driver, line))
    finally:
        await driver.close()
