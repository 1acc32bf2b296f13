"""What the event loop was doing when a pass took long.

While the loop's lag is measured (see loop_lag), a timer of the process's CPU time interrupts a pass that has used some
milliseconds, and the functions under way are noted. The timer is set again where passes begin, once in a millisecond at
most, so that short passes never see it, and it does not run while the broker sleeps. The kernel looks at it once a
tick, every four milliseconds or so: what is shorter may be missed, what is longer is not.

A collection of garbage is in nobody's stack, so it is timed by itself.
"""

import gc
import signal
from collections import Counter
from threading import current_thread, main_thread
from time import thread_time
from types import FrameType

_LOOK_SECONDS = 0.002
_OURS = "ottla."
_OURS_SHOWN = 6  # the innermost
NOWHERE = "-"


class LoopPlaces:
    """The places of one pass, and how long garbage was collected."""

    def __init__(self) -> None:
        self.longest_collection = 0.0
        self.is_working = False  # a pass is under way
        self._seen: list[str] = []
        self._is_watching = False
        self._collection_began = 0.0

    def watch(self) -> None:
        """From now on, in the thread that calls this; only a process's main thread can be interrupted."""
        gc.callbacks.append(self._on_collection)
        if current_thread() is main_thread():
            signal.signal(signal.SIGPROF, self._look)
            self._is_watching = True

    def unwatch(self) -> None:
        """No more."""
        gc.callbacks.remove(self._on_collection)
        if self._is_watching:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, signal.SIG_IGN)
            self._is_watching = False

    def look_soon(self) -> None:
        """Look at the pass that begins if it takes long."""
        self._seen.clear()
        if self._is_watching:
            signal.setitimer(signal.ITIMER_PROF, _LOOK_SECONDS)

    def take(self) -> str:
        """Where the loop was seen most often since the last time."""
        seen, self._seen = self._seen, []
        return Counter(seen).most_common(1)[0][0] if seen else NOWHERE

    def _look(self, _: int, frame: FrameType | None) -> None:
        if self.is_working:
            self._seen.append(place_of(frame))
            signal.setitimer(signal.ITIMER_PROF, _LOOK_SECONDS)

    def _on_collection(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collection_began = thread_time()
        else:
            self.longest_collection = max(self.longest_collection, thread_time() - self._collection_began)


def place_of(frame: FrameType | None) -> str:
    """Our functions under way, from the outermost to the innermost, and whom that one has called."""
    ours: list[str] = []
    other = ""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        name = f"{module.rpartition('.')[2]}.{frame.f_code.co_name}"
        if module.startswith(_OURS):
            ours.append(name)
        elif not ours:
            other = name
        frame = frame.f_back
    names = ours[:_OURS_SHOWN][::-1] + ([other] if other else [])
    return "/".join(names) or NOWHERE
