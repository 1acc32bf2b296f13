"""`python -m benchmarks`: Ottla and a real Kafka in turns; QUICK=1 for a short run."""

import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

from benchmarks.measures import FULL, QUICK, Figures, Measure, measure
from benchmarks.process_figures import OtherWork
from benchmarks.report import caveat, shown, table, write_page
from compat_tests.broker_process import BrokerProcess
from compat_tests.kafka.real import KAFKA_DEFAULT_OPTIONS, RealKafka
from compat_tests.ottla_process import OttlaProcess

BROKERS: dict[str, Callable[[], BrokerProcess]] = {
    "ottla": OttlaProcess,
    "kafka": lambda: RealKafka(java_options=KAFKA_DEFAULT_OPTIONS),
}


def main() -> int:
    """Run all rounds, print the table, write the page."""
    quick = os.environ.get("QUICK", "") not in ("", "0")
    sizes = QUICK if quick else FULL
    started = time.monotonic()
    others = OtherWork()
    results: dict[str, list[Figures]] = {name: [] for name in BROKERS}
    passes = sizes.rounds * len(BROKERS)
    for number in range(passes):
        name = list(BROKERS)[number % len(BROKERS)]

        def say(what: Measure, value: float, label: str = f"[{number + 1}/{passes}] {name}") -> None:
            elapsed = time.monotonic() - started
            print(f"{elapsed:5.0f} s  {label:12} {what.title:44} {shown(what, value):>20}", flush=True)

        results[name].append(measure(BROKERS[name](), sizes, say))
    other_cores = others.cores()
    print(f"\n{table(results)}\n\n{caveat(other_cores)}", end="")
    print(f"written to {write_page(results, version('ottla'), sizes, quick, other_cores)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
