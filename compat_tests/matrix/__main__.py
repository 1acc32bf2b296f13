"""`make compat`: all cases of all clients on Ottla and on Apache Kafka, with progress, and the page about them.

The exit code is 1 if any case failed. A run of all cases of a client renews its row in docs/compatibility.md; with
`--area`, `--case` or `--quick` nothing is written.
"""

import argparse
import math
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib.metadata import version as installed_version

from compat_tests.matrix import page
from compat_tests.matrix.brokers import NEWEST, REFERENCES, start_brokers
from compat_tests.matrix.case import Case, all_cases
from compat_tests.matrix.clients import Client, NotHere, all_clients, client_named
from compat_tests.matrix.display import Display, clock
from compat_tests.matrix.judge import FAILED, BothBrokers, Verdict, cases_for, judge_all
from compat_tests.matrix.results import Row, keep, keep_details, kept_rows, missing_row, row

AT_A_TIME = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; the exit code."""
    options = _parser().parse_args(arguments)
    clients = [client_named(name) for name in options.client] or list(all_clients())
    chosen = _chosen(all_cases(), options)
    display = Display()
    ready: list[tuple[Client, list[Case]]] = []
    rows: list[Row] = []
    ottla = installed_version("ottla")
    for client in clients:
        cases = cases_for(client, chosen)
        if not cases:
            continue
        display.expect(client.name, client.title, len(cases))
        try:
            client.ready()
        except NotHere as lack:
            display.lacks(client.name, str(lack))
            rows.append(missing_row(client, options.reference, ottla, str(lack), cases))
        else:
            ready.append((client, cases))
    # The longest first, as far as known, so that none of them is alone at the end.
    last_seconds = {each.key: each.seconds for each in kept_rows()}
    ready.sort(key=lambda each: -last_seconds.get((each[0].name, options.reference), math.inf))
    began = time.monotonic()
    failures, ran = _run(ready, options.reference, ottla, display)
    rows += ran
    display.say(f"{failures or 'none'} failed, after {clock(time.monotonic() - began)}")
    if not (options.area or options.case or options.quick or options.no_page):
        page.write(keep(rows, [client.name for client in all_clients()]))
        display.say(f"wrote {page.PAGE} and its picture")
    return 1 if failures else 0


def _run(
    ready: list[tuple[Client, list[Case]]], reference: str, ottla: str, display: Display
) -> tuple[int, list[Row]]:
    """Run the clients, two at a time: how many cases failed, and the rows."""
    if not ready:
        return 0, []
    stopped = threading.Event()

    with ExitStack() as stack:
        display.say(f"starting Ottla and Apache Kafka {reference} ...")
        bootstraps = start_brokers(stack, reference)

        def run_client(client: Client, cases: list[Case]) -> tuple[list[Verdict], Row]:
            began = time.monotonic()
            display.begins(client.name)
            with BothBrokers(client, bootstraps) as both:
                version = both.version()
                verdicts = judge_all(both, cases, lambda found: display.judged(client.name, found), stopped)
            display.ends(client.name)
            keep_details(client, reference, verdicts)
            return verdicts, row(client, version, reference, ottla, verdicts, time.monotonic() - began)

        pool = stack.enter_context(ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="client"))
        try:
            running = [pool.submit(run_client, client, cases) for client, cases in ready]
            outcomes = [future.result() for future in running]
        except BaseException:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            display.finish()
    failures = sum(found.status == FAILED for verdicts, _ in outcomes for found in verdicts)
    return failures, [made for _, made in outcomes]


def _chosen(cases: list[Case], options: argparse.Namespace) -> list[Case]:
    return [
        case
        for case in cases
        if (not options.area or case.area in options.area)
        and (not options.case or any(words in case.id for words in options.case))
        and (not options.quick or case.quick)
        and (case.since is None or _number(case.since) <= _number(options.reference))
    ]


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m compat_tests.matrix", description=__doc__)
    names = [client.name for client in all_clients()]
    parser.add_argument(
        "--client", action="append", default=[], choices=names, help="this client only; may be repeated"
    )
    parser.add_argument("--area", action="append", default=[], help="cases of this area only")
    parser.add_argument("--case", action="append", default=[], help="cases with these words in their name")
    parser.add_argument("--quick", action="store_true", help="the cases that make test runs")
    parser.add_argument(
        "--reference", default=NEWEST, choices=list(REFERENCES), help="the Apache Kafka beside Ottla"
    )
    parser.add_argument("--no-page", action="store_true", help="leave docs/compatibility.md as it is")
    return parser


if __name__ == "__main__":
    sys.exit(main())
