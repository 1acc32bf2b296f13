"""The logs of this broker on disk: opened at start, made and deleted as the metadata says, kept flushed and tidy.

File work that can take long runs in worker threads; the table of partitions changes only in the event loop.
"""

from __future__ import annotations

import logging

log = logging.getLogger("ottla.server")
