"""Record batches of format v2: header view and patching, records, building, compression."""

from ottla.wire.records.builder import build_batch, with_offsets
from ottla.wire.records.compression import Codec, compress, decompress
from ottla.wire.records.control import ControlType
from ottla.wire.records.header import (
    BatchView,
    CorruptBatch,
    iter_batches,
    patch,
    patch_append_time,
    patch_timestamp,
    split_batches,
)
from ottla.wire.records.lengths import count_matches
from ottla.wire.records.records import (
    InvalidRecord,
    Record,
    count_is_possible,
    iter_positions,
    iter_records,
)

__all__ = [
    "BatchView",
    "Codec",
    "ControlType",
    "CorruptBatch",
    "InvalidRecord",
    "Record",
    "build_batch",
    "compress",
    "count_is_possible",
    "count_matches",
    "decompress",
    "iter_batches",
    "iter_positions",
    "iter_records",
    "patch",
    "patch_append_time",
    "patch_timestamp",
    "split_batches",
    "with_offsets",
]
