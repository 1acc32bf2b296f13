"""`python -m compat_tests.history FILE ... [--without RULE] [--copies SOURCE=TARGET]`: 0 if no rule is broken."""

import argparse
import sys
from pathlib import Path

from compat_tests.history.check import RULES, check, report
from compat_tests.history.operations import BadHistory, parse


def main(arguments: list[str]) -> int:
    """Check the histories, print what is wrong and what there was to judge."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.history", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="histories that belong together, as JSON lines")
    parser.add_argument(
        "--without", action="append", default=[], choices=list(RULES), help="leave out a rule"
    )
    parser.add_argument(
        "--copies",
        action="append",
        default=[],
        type=lambda pair: tuple(pair.split("=", 1)),
        metavar="SOURCE=TARGET",
        help="every value of one topic must be in the other",
    )
    wanted = parser.parse_args(arguments)
    try:
        operations = parse(line for path in wanted.files for line in path.read_text().splitlines())
    except (BadHistory, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    anomalies = check(operations, without=wanted.without, copies=wanted.copies)
    for line in [*map(str, anomalies), *report(operations)]:
        sys.stdout.write(f"{line}\n")
    return 1 if anomalies else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
