"""The cleaning of a log: map the keys of its dirty part, then copy what survives of all its cleanable segments.

Two passes. The first reads the dirty segments and notes the last record of each key, until the map is full or the part
ends. The second reads everything up to there, the clean part included, in groups of neighbouring segments, and
writes each group as one new segment with the suffix `.cleaned`, fsynced. Putting it in the place of the old
ones is the work of whoever owns the log (see swap). Nothing but `.cleaned` files is written here, so this may run
anywhere, in another process too, and be cut off at any time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from ottla.log_store.compaction.compiled import CompiledRound
from ottla.log_store.compaction.interpreted import InterpretedRound
from ottla.log_store.compaction.job import CleanedGroup, CleaningJob, CleaningResult
from ottla.log_store.compaction.round import Round
from ottla.log_store.files import CLEANED_SUFFIX, OS_FILE_SYSTEM, FileSystem, unlink_if_there
from ottla.native import speed


def clean(job: CleaningJob, fs: FileSystem = OS_FILE_SYSTEM) -> Iterator[CleanedGroup | CleaningResult]:
    """Clean a log as far as the map of keys reaches; yields each group when its replacement lies ready, and at last
    the result. KafkaError if the log is damaged, OSError if the disk refuses."""
    cleaning: Round = InterpretedRound(job, fs) if speed is None else CompiledRound(job, fs, speed)
    cleaning.map_keys()
    yield from cleaning.clean_groups()
    yield cleaning.result()


def remove_leftovers(fs: FileSystem, directory: str) -> None:
    """Remove what a round that was given up has made; the directory may be gone."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(directory):
            if name.endswith(CLEANED_SUFFIX):
                unlink_if_there(fs, os.path.join(directory, name))
