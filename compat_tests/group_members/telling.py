"""What every member does: watch its standard input for the end, and tell what happens."""

import sys
import threading
import time
from collections.abc import Collection, Iterable, Mapping


def settings_of(arguments: Iterable[str]) -> dict[str, str]:
    """`name=value` words as a dictionary."""
    return dict(argument.split("=", 1) for argument in arguments)


def end_of_input() -> threading.Event:
    """An event that is set when standard input ends: time to leave."""
    ended = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    return ended


class Telling:
    """Prints the lines of one member."""

    def __init__(self) -> None:
        self._owned: set[int] = set()

    def owns(self, partitions: Collection[int]) -> None:
        """Tell the assignment if it is another than before."""
        if set(partitions) != self._owned:
            self._owned = set(partitions)
            self._say("owns", ",".join(map(str, sorted(partitions))))

    def read(self, offsets: Mapping[int, list[int]]) -> dict[int, int]:
        """Tell which offsets were read, as runs without a gap; the offset to commit for each partition."""
        for partition, found in offsets.items():
            first = expected = found[0]
            for offset in found:
                if offset != expected:
                    self._say("read", f"{partition} {first} {expected}")
                    first = offset
                expected = offset + 1
            self._say("read", f"{partition} {first} {expected}")
        return {partition: found[-1] + 1 for partition, found in offsets.items()}

    def committed(self, offsets: Mapping[int, int]) -> None:
        for partition, offset in offsets.items():
            self._say("committed", f"{partition} {offset}")

    def failed(self, error: Exception) -> None:
        self._say("failed", f"{type(error).__name__} {error}")

    def left(self) -> None:
        self._say("left", "")

    def _say(self, kind: str, words: str) -> None:
        sys.stdout.write(f"{time.monotonic_ns()} {kind} {words}\n")
        sys.stdout.flush()
