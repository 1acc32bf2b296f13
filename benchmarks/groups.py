"""`python -m benchmarks.groups`: groups of both protocols and commits on Ottla and a real Kafka, in turns in one run.

It writes its part of docs/benchmarks.md; QUICK=1 for one round.
"""

import os
import sys
from collections.abc import Callable

from benchmarks.classic_groups import measure_classic_groups
from benchmarks.consumer_groups import measure_consumer_groups
from benchmarks.measures import Figures
from benchmarks.process_figures import OtherWork
from benchmarks.report import GROUPS, caveat, shown, table, write_section
from compat_tests.broker_process import BrokerProcess
from compat_tests.kafka.real import KAFKA_DEFAULT_OPTIONS, RealKafka
from compat_tests.ottla_process import OttlaProcess

# Waiting for more members and for the next assignment is a choice, not work: neither broker waits.
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.consumer.assignment.interval.ms": "0"}
BROKERS: dict[str, Callable[[], BrokerProcess]] = {
    "ottla": lambda: OttlaProcess(properties=SETTINGS),
    "kafka": lambda: RealKafka(properties=SETTINGS, java_options=KAFKA_DEFAULT_OPTIONS),
}


def main() -> int:
    """Measure everything, print the table, write it into the page."""
    rounds = 1 if os.environ.get("QUICK", "") not in ("", "0") else 3
    others = OtherWork()
    results: dict[str, list[Figures]] = {name: [] for name in BROKERS}
    for _ in range(rounds):
        for name, make in BROKERS.items():
            figures: Figures = {}
            for part in (measure_classic_groups, measure_consumer_groups):
                with make() as broker:
                    figures |= part(broker)
                    broker.stop()
            results[name].append(figures)
            for what, value in figures.items():
                print(f"{name:6} {what.title:52} {shown(what, value):>14}", flush=True)
    other_cores = others.cores()
    print(f"\n{table(results)}\n\n{caveat(other_cores)}", end="")
    print(f"written to {write_section(GROUPS, results, other_cores)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
