"""`python -m benchmarks`: Ottla and a real Kafka in turns; QUICK=1 for a short run, ONLY=produce,latency for some
parts, ROUNDS=1 for fewer rounds.

`--render` writes the page anew from what was measured before.
"""

import compileall
import os
import sys

from benchmarks.bench import Part, is_quick
from benchmarks.client_process import CHECKOUT
from benchmarks.page import rows_of, write_page
from benchmarks.parts import PARTS
from benchmarks.report import table_of
from benchmarks.results import load
from benchmarks.runner import Runner


def main() -> int:
    """Measure, print the tables, write the page."""
    quick = is_quick()
    try:
        chosen = choose(os.environ.get("ONLY", ""))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    failures: list[str] = []
    if "--render" not in sys.argv:
        _cache_bytecode()
        runner = Runner(chosen, quick)
        runner.run()
        failures = runner.failures
        for part in chosen:
            results = load(part.name, quick)
            if results is not None and not part.is_of_machine:
                print(f"\n{part.section.title}\n{table_of(rows_of(part, results))}")
    print(f"\nwritten to {write_page(PARTS, quick)}")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


def _cache_bytecode() -> None:
    """As it is for users from the second start on, whatever the environment says: compiling takes longer than a
    start."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for room in (CHECKOUT / "ottla").iterdir():
        if room.is_dir():
            compileall.compile_dir(room.resolve(), quiet=2)


def choose(names: str) -> list[Part]:
    """The parts that are named, separated by commas; all without a name. ValueError for one that is not there."""
    by_name = {part.name: part for part in PARTS}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in by_name:
            raise ValueError(f"there is no part {name}; there are {', '.join(by_name)}")
    return [part for part in PARTS if part.name in wanted or not wanted]


if __name__ == "__main__":
    sys.exit(main())
