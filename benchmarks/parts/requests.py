"""One record a request, over one connection and over many."""

from collections.abc import Iterator

from benchmarks import clients, raw_load
from benchmarks.bench import Bench, Part
from benchmarks.measures import Aim, Measure
from benchmarks.report import Section

AIM = Aim(ratio_at_least=1.2)
CONNECTIONS = (1, 8, 64)
PARTITIONS = 8
SECTION = Section(
    "One record a request",
    """\
Records of 100 bytes with acks=all, each in a request of its own, to a topic of eight partitions. The raw load is one
process that has five requests under way on each connection, as Kafka's own producer has; librdkafka is eight
producers in one process, with no limit of requests under way.
{rounds}""",
)
RATES = {count: Measure(f"raw requests, {count} connections", "/s", True, AIM) for count in CONNECTIONS}
CPU = {
    count: Measure(f"raw requests, {count} connections: broker CPU each", "µs", False)
    for count in CONNECTIONS
}
LIBRDKAFKA = Measure("requests of 8 librdkafka producers", "/s", True, AIM)
LIBRDKAFKA_CPU = Measure("requests of 8 librdkafka producers: broker CPU each", "µs", False)


def measure_requests(bench: Bench) -> Iterator[None]:
    """Each with a fifth of its requests before the clock runs."""
    topic = "requests"
    bench.create_topic(topic, PARTITIONS)
    for connections in CONNECTIONS:
        count = bench.size(60_000 if connections == 1 else 200_000, 12_000)
        for requests in (count // 5, count):
            watch = bench.run(
                raw_load.produce,
                topic=topic,
                size=100,
                records=1,
                requests=requests,
                connections=connections,
                partitions=PARTITIONS,
            )
        done = watch.result["requests"]
        bench.note(RATES[connections], done / watch.seconds, watch)
        bench.note(CPU[connections], watch.broker_cpu_seconds / done * 1e6)
        yield
    count = bench.size(60_000, 16_000)
    for requests in (count // 5, count):
        watch = bench.run(clients.small_requests, topic=topic, producers=8, count=requests)
    bench.note(LIBRDKAFKA, count / watch.seconds, watch)
    bench.note(LIBRDKAFKA_CPU, watch.broker_cpu_seconds / count * 1e6)


REQUESTS_PART = Part(
    "requests",
    SECTION,
    [
        *(each for count in CONNECTIONS for each in (RATES[count], CPU[count])),
        LIBRDKAFKA,
        LIBRDKAFKA_CPU,
    ],
    measure_requests,
    seconds=30,
)
