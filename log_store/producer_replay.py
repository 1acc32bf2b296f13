"""The producer state of a log made anew: when it is opened, and when its end was cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.log_store.log import Log


def rebuild_producers(log: Log, now_ms: int) -> None:
    """Take the newest snapshot and replay the batches after it."""
    producers = log.producers
    producers.truncate_and_reload(log.log_start_offset, log.log_end_offset, now_ms)
    start = producers.map_end_offset
    if start < log.log_end_offset:
        for segment in log.segments[log.slot_of(start) :]:
            if segment.base_offset >= log.log_end_offset:  # recovery has yet to read it
                break
            found = segment.find(start)
            if found is not None:
                producers.replay(view for _, view in segment.read_batches(found.position))
    producers.map_end_offset = log.log_end_offset
    producers.advance_high_watermark(log.high_watermark)
