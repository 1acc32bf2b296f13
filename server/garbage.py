"""What the garbage collector need not look at, in a process that is a broker and nothing else.

A full collection walks every container there is and keeps the loop waiting meanwhile: 35 ms with 5,000 partitions, and
50 ms when twenty clients ask for all of their metadata at once. But a broker makes no garbage that leads back to
itself, beside what its interpreter and its libraries make in passing, and that is found while it is young. So the
collector never goes through the old by itself, only once in a while when it is asked to (see maintenance). What it has
found to be in use then, and what has just been made of partitions and coordinators, which live long, is set aside: it
goes without the collector when it goes.

Garbage that leads back to itself and is set aside with them is never found, so the young, among which nearly all of it
is, are collected before.

The collector begins when some hundreds of objects more were made than freed. Where much that is old is freed meanwhile,
as when a large transaction ends, tens of thousands of young ones gather, and to look at them takes ten milliseconds. So
what a long piece of work has made is set aside whenever it rests (see turns), when that is little.
"""

import gc

_YOUNG_GENERATIONS = 1
_NEVER = (1 << 31) - 1  # collections of the younger ones before one of the oldest
_is_own_process = False


def begin_collecting() -> None:
    """The broker has started: what is there lives as long as the process, which is a broker's own."""
    global _is_own_process
    _is_own_process = True
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], _NEVER)
    gc.enable()


def set_aside() -> None:
    """Keep the collector from what there is now. Nothing happens in a process that belongs to somebody else."""
    if _is_own_process:
        gc.collect(_YOUNG_GENERATIONS)
        gc.freeze()


def look_through() -> None:
    """Collect what is not set aside yet, and set aside what is in use."""
    if _is_own_process:
        gc.collect()
        gc.freeze()
