"""One case of one client on both brokers, and what is to be said of the two answers."""

import json
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self
from uuid import uuid4

from compat_tests.matrix.case import Case, Run, Unmet, slug
from compat_tests.matrix.clients import Client
from compat_tests.matrix.driver import Driver, DriverError, DriverGone, Unsupported
from compat_tests.matrix.stage import Stage

PASSED, FAILED, NOT_OFFERED = "passed", "failed", "not offered"
OTTLA, KAFKA = "ottla", "kafka"


@dataclass(frozen=True)
class Answer:
    """How a case went on one broker: `value` is what it returned, `wrong` what was not as expected."""

    value: object = None
    wrong: str = ""
    unsupported: str = ""

    def shown(self) -> str:
        """For a reader: what is wrong, or the value."""
        if self.unsupported:
            return f"not offered: {self.unsupported}"
        return self.wrong or json.dumps(self.value, indent=1, sort_keys=True, default=repr)


@dataclass(frozen=True)
class Verdict:
    """What a case showed; `why` in one line."""

    case: Case
    status: str
    why: str
    ottla: Answer
    kafka: Answer
    seconds: float = 0


def verdict(case: Case, ottla: Answer, kafka: Answer) -> Verdict:
    """Passed if both brokers answered as expected and alike; not offered if the library has no such call."""

    def judged(status: str, why: str) -> Verdict:
        return Verdict(case, status, why, ottla, kafka)

    if ottla.unsupported and kafka.unsupported:
        return judged(NOT_OFFERED, kafka.unsupported)
    if ottla.unsupported or kafka.unsupported:
        return judged(FAILED, "the driver offers it on one broker only")
    if ottla.wrong and kafka.wrong:
        return judged(FAILED, "neither broker is as expected: the case or the client is wrong")
    if kafka.wrong:
        return judged(FAILED, "Kafka is not as expected: the case or the client is wrong")
    if ottla.wrong:
        return judged(FAILED, "Ottla is not as expected")
    if _canonical(ottla.value) != _canonical(kafka.value):
        return judged(FAILED, "the brokers answer differently")
    return judged(PASSED, "")


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


class OneBroker:
    """A client on one broker: its drivers, started when first asked for and again when they are lost."""

    def __init__(self, client: Client, bootstrap: str, kafka_bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._client = client
        self._kafka_bootstrap = kafka_bootstrap
        self._stage = Stage(bootstrap)
        self._drivers: dict[int, Driver] = {}

    def driver(self, number: int = 1) -> Driver:
        """The living driver of that number."""
        driver = self._drivers.get(number)
        if driver is not None and driver.lost:
            driver.close()
            driver = None
        if driver is None:
            driver = self._client.start(self.bootstrap)
            self._drivers[number] = driver
        return driver

    def answer(self, case: Case, prefix: str) -> Answer:
        """Run the case here."""
        run = Run(
            client=self._client.name,
            bootstrap=self.bootstrap,
            kafka_bootstrap=self._kafka_bootstrap,
            prefix=prefix,
            start=self.driver,
            stage=self._stage,
        )
        try:
            return Answer(case.body(run, **case.arguments))
        except Unsupported as unsupported:
            return Answer(unsupported=str(unsupported) or "the library has no such call")
        except Unmet as unmet:
            return Answer(wrong=f"{unmet}{_place(unmet)}")
        except (DriverError, DriverGone) as error:
            return Answer(wrong=f"{error}{_place(error)}")
        except Exception as error:  # noqa: BLE001 - a mistake in one case must not end the run of all
            return Answer(wrong=f"{type(error).__name__}: {error}{_place(error)}")
        finally:
            run.close()

    def close(self) -> None:
        """End the drivers."""
        for driver in self._drivers.values():
            driver.close()
        self._stage.close()


class BothBrokers:
    """A client on Ottla and on Kafka; a case runs on both at the same time."""

    def __init__(self, client: Client, bootstraps: Mapping[str, str]) -> None:
        self.client = client
        self.sides = {name: OneBroker(client, bootstraps[name], bootstraps[KAFKA]) for name in (OTTLA, KAFKA)}
        self._pool = ThreadPoolExecutor(2, thread_name_prefix=client.name)

    def version(self) -> str:
        """The library's version, as its driver or the client's entry says it."""
        if self.client.version is not None:
            return self.client.version
        try:
            return str(self.sides[OTTLA].driver().call("version")["version"])
        except (DriverError, DriverGone):  # then its cases fail, too, and say why
            return "unknown"

    def judge(self, case: Case) -> Verdict:
        """Run one case on both."""
        began = time.monotonic()
        prefix = f"{slug(case.title)[:80]}-{uuid4().hex[:8]}"
        answers = {name: self._pool.submit(side.answer, case, prefix) for name, side in self.sides.items()}
        found = verdict(case, answers[OTTLA].result(), answers[KAFKA].result())
        return replace(found, seconds=time.monotonic() - began)

    def close(self) -> None:
        """End what was started."""
        self._pool.shutdown()
        for side in self.sides.values():
            side.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _place(error: Exception) -> str:
    """The line of the case that raised."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "/matrix/cases/" in frame.filename or "/matrix/ecosystem/" in frame.filename:
            return f"\n  at {frame.filename.rsplit('/matrix/', 1)[1]}:{frame.lineno}: {frame.line}"
    return ""


def judge_all(
    both: BothBrokers, cases: list[Case], tell: Callable[[Verdict], None], stopped: threading.Event
) -> list[Verdict]:
    """Judge one case after another, telling of each."""
    verdicts = []
    for case in cases:
        if stopped.is_set():
            break
        verdicts.append(both.judge(case))
        tell(verdicts[-1])
    return verdicts


def cases_for(client: Client, cases: list[Case]) -> list[Case]:
    """Those that this client takes."""
    return [case for case in cases if (client.name in case.clients if case.clients else client.shared)]
