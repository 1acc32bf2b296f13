"""Garbage that leads back to itself, which only the collector finds."""

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage_in_circles() -> Iterator[set[str]]:
    """The names of our classes of which there is garbage in circles, when this has ended."""
    names: set[str] = set()
    gc.collect()
    logging.disable()  # its records keep what they tell of
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield names
        gc.collect()
        names |= {
            type(each).__qualname__ for each in gc.garbage if type(each).__module__.startswith("ottla.")
        }
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        logging.disable(logging.NOTSET)
