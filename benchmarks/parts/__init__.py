"""The parts of the benchmark, in the order in which they run and stand on the page."""

from benchmarks.bench import Part
from benchmarks.parts.connections import CONNECTIONS_PART
from benchmarks.parts.consume import CONSUME_PART
from benchmarks.parts.groups import GROUPS_PART
from benchmarks.parts.growth import GROWTH_PART
from benchmarks.parts.heavy import HEAVY_PART
from benchmarks.parts.latency import LATENCY_PART
from benchmarks.parts.log_size import LOG_PART
from benchmarks.parts.machine import MACHINE_PART
from benchmarks.parts.partitions import PARTITIONS_PART
from benchmarks.parts.produce import PRODUCE_PART
from benchmarks.parts.requests import REQUESTS_PART
from benchmarks.parts.start import MEMORY_PART, START_PART
from benchmarks.parts.tools import TOOLS_PART
from benchmarks.parts.transactions import TRANSACTIONS_PART

PARTS: tuple[Part, ...] = (
    START_PART,
    PRODUCE_PART,
    CONSUME_PART,
    REQUESTS_PART,
    LATENCY_PART,
    TOOLS_PART,
    CONNECTIONS_PART,
    TRANSACTIONS_PART,
    MEMORY_PART,
    PARTITIONS_PART,
    HEAVY_PART,
    GROWTH_PART,
    LOG_PART,
    GROUPS_PART,
    MACHINE_PART,
)
