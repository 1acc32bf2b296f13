"""One part on one broker in one round, by turns: between two of them the other broker has its own, and this one is
stopped."""

import signal
from collections.abc import Iterator
from contextlib import suppress

from benchmarks.bench import Bench, Part
from benchmarks.process_figures import wait_for_rest
from benchmarks.results import Pass
from compat_tests.broker_process import BrokerProcess


class PartPass:
    """`go_on` takes a turn."""

    def __init__(self, part: Part, name: str, bench: Bench, broker: BrokerProcess | None) -> None:
        self.part = part
        self.name = name
        self._bench = bench
        self._broker = broker
        self._is_paused = False
        self._turns = self._all_turns()

    def go_on(self) -> bool:
        """Take the next turn; whether there are more."""
        is_watched = not self.part.is_of_start  # nothing must be before the first acknowledgement
        if is_watched:
            self._bench.skip_lag()
        has_more = next(self._turns, False)
        if is_watched:
            self._bench.read_lag()
        if not has_more:
            self._bench.delete_topics()
        return has_more

    def pause(self) -> None:
        """Stop the broker while the other has its turn, once it has come to rest: its compiler or collector may still
        be at work."""
        if not self._is_paused and self._broker is not None and self._broker.process is not None:
            with suppress(OSError):  # it has died, which its next turn will tell
                wait_for_rest(self._broker.pid)
                self._broker.send_signal(signal.SIGSTOP)
                self._is_paused = True

    def resume(self) -> None:
        """Let it go on, and do what it would have done meanwhile."""
        if self._is_paused and self._broker is not None and self._broker.process is not None:
            self._is_paused = False
            with suppress(OSError):
                self._broker.send_signal(signal.SIGCONT)
                wait_for_rest(self._broker.pid)

    def _all_turns(self) -> Iterator[bool]:
        for _ in self.part.run(self._bench) or ():
            yield True

    def taken(self) -> Pass | None:
        """The figures so far, if there are any."""
        if not self._bench.entries:
            return None
        figures, longest_work = self._bench.lag.summary()
        return Pass(self._bench.entries, figures, longest_work)
