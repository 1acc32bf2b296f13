"""What is measured and what it should be: a measure, its aim, the figures of a run of it, and how they are judged.

Everything here is plain arithmetic. A ratio is always Ottla's figure divided by Kafka's of the same round.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

# From this share of its time on, a thread that runs or waits for a core has no time to wait for a broker.
CLIENT_IS_BUSY = 0.9
MACHINE_IS_BUSY = 0.93
# With fewer requests under way on average the broker mostly has nothing to do until the client has made the next one.
FEW_UNDER_WAY = 0.5
# A broker that uses less of a core has nothing to do for more than half of the time, if it is not that it waits: then
# nobody would be using most of the machine either.
BROKER_IS_IDLE = 0.5
CLIENTS_ARE_BUSY = 0.85
# A median that is less than this below 1 may be so by chance, if rounds are on both sides.
EVEN_SHARE = 0.03


@dataclass(frozen=True, slots=True)
class Aim:
    """What Ottla's figure should be beside Kafka's, and by itself. A client that is the limit itself cannot show how
    good a broker is, so there all that is asked for is to be no worse than Kafka."""

    ratio_at_least: float | None = None
    ratio_at_most: float | None = None
    value_at_least: float | None = None
    value_at_most: float | None = None

    def is_met(self, ratio: float, value: float, limit: str) -> bool:
        """Whether a ratio and Ottla's own figure are as they should be."""
        at_least = self._at_least(limit)
        return (
            (at_least is None or ratio >= at_least)
            and (self.ratio_at_most is None or ratio <= self.ratio_at_most)
            and (self.value_at_least is None or value >= self.value_at_least)
            and (self.value_at_most is None or value <= self.value_at_most)
        )

    def _at_least(self, limit: str) -> float | None:
        return 1.0 if self.ratio_at_least is not None and limit == "client" else self.ratio_at_least

    def words(self, unit: str, limit: str = "") -> str:
        """The aim as the table shows it."""
        found = []
        at_least = self._at_least(limit)
        if at_least is not None:
            found.append(f"≥ {at_least:g} ×")
        if self.ratio_at_most is not None:
            found.append(f"≤ {self.ratio_at_most:g} ×")
        if self.value_at_least is not None:
            found.append(f"≥ {self.value_at_least:g} {unit}")
        if self.value_at_most is not None:
            found.append(f"≤ {self.value_at_most:g} {unit}")
        return ", ".join(found)

    def ratio(self, limit: str = "") -> float | None:
        """From where on the ratio is good, if it is asked for."""
        at_least = self._at_least(limit)
        return at_least if at_least is not None else self.ratio_at_most


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of a table."""

    title: str
    unit: str
    more_is_better: bool
    aim: Aim | None = field(default=None, compare=False)


Figures = dict[Measure, float]


@dataclass(frozen=True, slots=True)
class Entry:
    """A figure, and what else was seen while it was taken; zero where it was not looked at."""

    value: float
    resident_mb: float = 0.0
    client: float = 0.0  # the share of time in which the client's busiest thread ran
    client_waits: float = 0.0  # and in which it waited for a core
    cores: float = 0.0  # in use by broker and client together
    under_way: float = 0.0  # requests that the broker had on average, of a client that may send several
    broker_cores: float = 0.0  # of the cores


@dataclass(frozen=True, slots=True)
class Verdict:
    """What several rounds say about a measure."""

    ottla: float
    kafka: float
    ratios: tuple[float, ...]
    limit: str
    is_met: bool | None
    is_unsure: bool = False  # some rounds meet the aim and others do not
    # Missed, but only by chance as far as the rounds tell: the client is the limit, so that it shows no more than that
    # the brokers are alike, and Ottla was ahead in some rounds.
    is_even: bool = False

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def low(self) -> float:
        return min(self.ratios)

    @property
    def high(self) -> float:
        return max(self.ratios)


def judge(measure: Measure, ottla: Sequence[Entry], kafka: Sequence[Entry], cores: int) -> Verdict:
    """Medians, the ratio of each round, what limited Ottla, and whether the median ratio meets the aim."""
    aim = measure.aim
    ratios = tuple(ours.value / max(theirs.value, 1e-9) for ours, theirs in zip(ottla, kafka, strict=False))
    value = statistics.median(entry.value for entry in ottla)
    # How long somebody waits is never his own matter alone.
    limit = limit_of(ottla, cores) if measure.more_is_better else ""
    ratio = statistics.median(ratios)
    has_idle_broker = limit == "broker" and is_idle(ottla, cores)
    if has_idle_broker or (aim is not None and is_out_of_reach(aim, ratio, limit, ottla)):
        limit = "client"
    kafka_value = statistics.median(entry.value for entry in kafka)
    if aim is None:
        return Verdict(value, kafka_value, ratios, limit, None)
    by_round = {aim.is_met(each, ours.value, limit) for each, ours in zip(ratios, ottla, strict=False)}
    is_met = aim.is_met(ratio, value, limit)
    is_close = 1 - EVEN_SHARE < ratio < 1 < max(ratios)
    is_even = not is_met and limit == "client" and measure.more_is_better and is_close
    return Verdict(value, kafka_value, ratios, limit, is_met, len(by_round) > 1, is_even)


def limit_of(entries: Sequence[Entry], cores: int) -> str:
    """What kept the figure from being better: the client, all cores of the machine, or the broker; "" when nobody
    looked."""
    client = statistics.median(entry.client for entry in entries)
    wants = statistics.median(entry.client + entry.client_waits for entry in entries)
    in_use = statistics.median(entry.cores for entry in entries)
    if client == 0:
        return ""
    if client >= CLIENT_IS_BUSY:
        return "client"
    if in_use >= MACHINE_IS_BUSY * cores or wants >= CLIENT_IS_BUSY:
        return "machine"
    under_way = statistics.median(entry.under_way for entry in entries)
    return "client" if 0 < under_way < FEW_UNDER_WAY else "broker"


def is_idle(entries: Sequence[Entry], cores: int) -> bool:
    """Whether the broker had nothing to do most of the time, as far as anybody looked, and clients had. What is sent in
    a second is counted of clients that have several requests under way, so there it is not what they wait for."""
    in_use = statistics.median(entry.cores for entry in entries)
    is_used_little = 0 < statistics.median(entry.broker_cores for entry in entries) < BROKER_IS_IDLE
    return is_used_little and in_use >= CLIENTS_ARE_BUSY * cores


def is_out_of_reach(aim: Aim, ratio: float, limit: str, entries: Sequence[Entry]) -> bool:
    """Whether the client would miss the aim on a broker that costs nothing and answers at once, too."""
    at_least = aim.ratio_at_least
    return limit == "machine" and at_least is not None and ratio_of_free_broker(ratio, entries) < at_least


def ratio_of_free_broker(ratio: float, entries: Sequence[Entry]) -> float:
    """What the ratio would be if all that the broker used of a busy machine had been the client's; without end where
    nobody looked."""
    shares = [entry.broker_cores / entry.cores for entry in entries if entry.broker_cores and entry.cores]
    return ratio / max(1 - statistics.median(shares), 1e-9) if shares else math.inf


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that is not exceeded by this share of them."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def percentiles(latencies: Sequence[float]) -> dict[str, float]:
    """The figures that are reported of latencies."""
    shares = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
    return {name: percentile(latencies, share) for name, share in shares.items()}


def shown(measure: Measure, value: float) -> str:
    """A figure with its unit, in as many digits as it deserves."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {measure.unit}"
