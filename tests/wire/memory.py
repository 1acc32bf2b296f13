"""A bound on what a block of a test allocates."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def allocates_little(limit_bytes: int = 300_000) -> Iterator[None]:
    """Fails when the block had more than this allocated at any time. Compiling a codec takes a part of it."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < limit_bytes
