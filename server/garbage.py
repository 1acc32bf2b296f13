"""Memory beside what handlers see: what the garbage collector need not look at, in a process that is a broker and
nothing else, and what the system gets back.

A full collection walks every container there is and keeps the loop waiting meanwhile: 35 ms with 5,000 partitions. But
partitions and coordinators live long, and they go without the collector when they go, because nothing in them leads
back to them. So what has just been made of them is set aside.

Garbage that leads back to itself and is set aside with them is never found, so the young, among which nearly all of it
is, are collected before.
"""

import gc

from ottla.native import speed

_YOUNG_GENERATIONS = 1
_is_own_process = False


def begin_collecting() -> None:
    """The broker has started: what is there lives as long as the process, which is a broker's own."""
    global _is_own_process
    _is_own_process = True
    gc.freeze()
    gc.enable()


def set_aside() -> None:
    """Keep the collector from what there is now. Nothing happens in a process that belongs to somebody else."""
    if _is_own_process:
        gc.collect(_YOUNG_GENERATIONS)
        gc.freeze()


def give_back() -> bool:
    """Give memory that was freed in the middle of what is in use back to the system, where that can be done; runs in a
    worker thread."""
    return speed is not None and bool(speed.give_back())
