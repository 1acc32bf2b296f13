"""How the cost of a request grows with what the broker has at hand: partitions, connections, waiting consumers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks import raw_load
from benchmarks.bench import Bench, Part
from benchmarks.measures import Aim, Measure
from benchmarks.plots import Plots, growth_plot
from benchmarks.report import Section
from benchmarks.results import PartResults
from compat_tests.raw_client import RawClient
from compat_tests.raw_topics import create_topic

# Flat: what one request or one delivery costs at the far end, beside the near one.
FLAT = Aim(value_at_most=1.5)
SECTION = Section(
    "How cost grows",
    """\
Broker CPU of one record in a request of its own, when the requests go round all partitions of a topic over one
connection, and over eight; when they come over ever more connections with one under way on each; and of one delivery,
when a record goes to ever more consumers that wait for it. Flat or falling means that the whole cost is linear; the
last row of each is the cost at the far end beside that at the near one, and up to 1.5 × counts as flat. Linear growth
of each would be 1,000 × or 50 ×.
Ottla writes small batches together that several connections send to one partition at the same moment. Eight
connections have forty requests under way, which share a write at one partition and have none to share at a thousand:
that row is of what sharing saves where it is possible, more than of what partitions cost. Of what a request costs more
at a thousand partitions, 3 to 5 µs, a profile gives 60 % to Python and the rest to the kernel, mostly to ext4. That
these are objects which are not in the processor's caches, and files whose time of writing is noted for each, is what it
looks like; neither was counted.
{rounds}""",
)


@dataclass(frozen=True, slots=True)
class Growth:
    """Something that grows, by steps."""

    name: str
    title: str
    steps: Sequence[int]

    @property
    def measures(self) -> list[Measure]:
        return [Measure(f"{self.title}, {step:,} {self.name}", "µs", False) for step in self.steps]

    @property
    def far(self) -> Measure:
        first, last = self.steps[0], self.steps[-1]
        return Measure(f"growth of cost, {first} → {last:,} {self.name}", "×", False, FLAT)

    def note(self, bench: Bench, costs: Sequence[float]) -> None:
        """The cost of each step, in microseconds."""
        for measure, cost in zip(self.measures, costs, strict=True):
            bench.note(measure, cost)
        bench.note(self.far, costs[-1] / costs[0])

    def plot(self, results: PartResults) -> Plots:
        """The steps as a curve."""
        caption = f"{self.title}: broker CPU, more {self.name}"
        steps = [f"{step:,} {self.name}" if step == self.steps[0] else f"{step:,}" for step in self.steps]
        file = "growth-" + self.name.replace(" ", "-")
        return growth_plot(file, results, steps, self.measures, caption)


PARTITIONS = Growth("partitions", "produce request", (1, 10, 100, 1000))
SHARED = Growth("partitions over 8 connections", "produce request", PARTITIONS.steps)
CONNECTIONS = Growth("connections", "produce request", (1, 10, 100, 1000))
CONSUMERS = Growth("consumers", "delivery", (1, 5, 10, 25, 50))
GROWTHS = (PARTITIONS, SHARED, CONNECTIONS, CONSUMERS)


def measure_growth(bench: Bench) -> Iterator[None]:
    """One after the other."""
    requests = bench.size(60_000, 2_000)
    for count in PARTITIONS.steps:
        bench.create_topic(f"of-{count}", count)
    for growth, connections in ((PARTITIONS, 1), (SHARED, 8)):
        costs = []
        for count in growth.steps:
            costs.append(
                _cost(bench, requests, topic=f"of-{count}", connections=connections, partitions=count)
            )
            yield
        growth.note(bench, costs)
    costs = []
    for count in CONNECTIONS.steps:
        costs.append(_cost(bench, requests, topic="of-10", connections=count, partitions=10, in_flight=1))
        yield
    CONNECTIONS.note(bench, costs)
    costs = []
    deliveries = bench.size(8_000, 1_000)
    for count in CONSUMERS.steps:
        for topic, rounds in (
            (f"before-{count}", max(deliveries // count // 5, 1)),
            (f"to-{count}", deliveries // count),
        ):
            with RawClient.to(bench.broker.bootstrap) as raw:
                create_topic(raw, topic)
            watch = bench.run(raw_load.fan_out, topic=topic, consumers=count, rounds=rounds)
        costs.append(watch.broker_cpu_seconds / watch.result["requests"] * 1e6)
        yield
    CONSUMERS.note(bench, costs)


def _cost(bench: Bench, requests: int, **arguments: object) -> float:
    """Broker CPU of a request in microseconds."""
    for count in (requests // 5, requests):
        watch = bench.run(raw_load.produce, size=100, records=1, requests=count, **arguments)
    return watch.broker_cpu_seconds / watch.result["requests"] * 1e6


def plot_growth(results: PartResults) -> Plots:
    """A plot for each."""
    return {name: plot for growth in GROWTHS for name, plot in growth.plot(results).items()}


GROWTH_PART = Part(
    "growth",
    SECTION,
    [measure for growth in GROWTHS for measure in (*growth.measures, growth.far)],
    measure_growth,
    plots=plot_growth,
    in_quick=False,
    seconds=35,
)
