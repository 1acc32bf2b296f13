"""Hypothesis strategies for records and whole batches."""

from __future__ import annotations

from hypothesis import strategies as st

from ottla.wire.records import Codec, Record

CODECS = list(Codec)
INT64_MAX = 2**63 - 1

nullable_bytes = st.none() | st.binary(max_size=200)
timestamps = st.integers(min_value=0, max_value=2**52) | st.just(-1)
header_keys = st.text(max_size=20)
headers = st.lists(st.tuples(header_keys, nullable_bytes), max_size=4).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn, *, min_size: int = 1, gaps: bool = True) -> list[Record]:
    """Records with ascending offsets, which compaction may have thinned out."""
    base_offset = draw(st.integers(min_value=0, max_value=2**62))
    count = draw(st.integers(min_value=min_size, max_value=8))
    offset = base_offset
    records = []
    for _ in range(count):
        records.append(
            Record(offset, draw(timestamps), draw(nullable_bytes), draw(nullable_bytes), draw(headers))
        )
        offset += draw(st.integers(min_value=1, max_value=1000)) if gaps else 1
    return records
