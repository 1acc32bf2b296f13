"""Waiting for what a broker shows a moment after its answer: Kafka applies metadata behind it."""

import threading
import time
from collections.abc import Callable

PATIENCE_SECONDS = 10
PAUSE_SECONDS = 0.02


def eventually(
    observe: Callable[[], object], expected: object, patience_seconds: float = PATIENCE_SECONDS
) -> None:
    """Observe again and again until it is what is expected; fail with the last observation otherwise."""
    deadline = time.monotonic() + patience_seconds
    pause = threading.Event()
    seen = observe()
    while seen != expected and time.monotonic() < deadline:
        pause.wait(PAUSE_SECONDS)
        seen = observe()
    assert seen == expected
