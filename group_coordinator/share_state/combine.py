"""State batches over state batches: what is newer counts, what is in front of the start offset is dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ottla.group_coordinator.share_partition.partition import StateBatch


def combine(
    old: Sequence[StateBatch], new: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """All of them in order, neighbours of one kind as one batch."""
    batches = list(old)
    for layer in _layers(new):
        batches = _overlay(batches, layer)
    combined: list[StateBatch] = []
    for batch in batches:
        if batch.last_offset < start_offset:
            continue
        if batch.first_offset < start_offset:
            batch = batch._replace(first_offset=start_offset)
        last = combined[-1] if combined else None
        if last is not None and last.last_offset + 1 == batch.first_offset and last[2:] == batch[2:]:
            combined[-1] = last._replace(last_offset=batch.last_offset)
        else:
            combined.append(batch)
    return tuple(combined)


def _layers(new: Iterable[StateBatch]) -> Iterator[list[StateBatch]]:
    """Stretches in ascending order without overlaps: as a rule there is one."""
    layer: list[StateBatch] = []
    for batch in new:
        if layer and batch.first_offset <= layer[-1].last_offset:
            yield layer
            layer = []
        layer.append(batch)
    if layer:
        yield layer


def _overlay(batches: Sequence[StateBatch], layer: Sequence[StateBatch]) -> list[StateBatch]:
    """Both in order; one pass."""
    left: list[StateBatch] = []
    index = 0
    for batch in batches:
        first = batch.first_offset
        while index < len(layer) and layer[index].last_offset < first:
            index += 1
        above = index
        while above < len(layer) and layer[above].first_offset <= batch.last_offset:
            if first < layer[above].first_offset:
                left.append(batch._replace(first_offset=first, last_offset=layer[above].first_offset - 1))
            first = layer[above].last_offset + 1
            above += 1
        if first <= batch.last_offset:
            left.append(batch._replace(first_offset=first))
    return sorted([*left, *layer])
