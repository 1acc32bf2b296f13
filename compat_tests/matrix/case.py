"""A case: what is asked of a client, written once and run on each broker.

    @case("produce", "{codec} keeps the records", over={"codec": ["none", "gzip"]}, quick=True)
    def codecs(run: Run, codec: str) -> object:
        topic = run.create(partitions=2)
        answer = run.call("produce", topic=topic, records=[...], codec=codec)
        expect(answer, [{"partition": 0, "offset": 0}])
        return answer

The case itself holds the answers against what Kafka must say; what it returns is then compared between the brokers, so
whatever may rightly differ there (ports, ids, times) is to be left out of it. Names given by `run` are the same on
both. Members, share members and transactional producers that a case leaves open are closed after it.
"""

import importlib
import itertools
import pkgutil
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from compat_tests.matrix.driver import Driver, DriverError, DriverGone, Unsupported
from compat_tests.matrix.stage import Stage

T = TypeVar("T")
Body = Callable[..., object]

PATIENCE_SECONDS = 20
PAUSE_SECONDS = 0.05
OPENING = {"join": "leave", "share_join": "share_leave", "txn_init": "txn_close"}


class Unmet(AssertionError):
    """A broker, or a client, did not do what the case expects."""


@dataclass(frozen=True)
class Case:
    """One case with the values of its parameters settled."""

    area: str
    title: str
    body: Body
    arguments: Mapping[str, object] = field(default_factory=dict)
    quick: bool = False
    since: str | None = None  # the oldest Apache Kafka that answers so, such as "4.0"
    clients: tuple[str, ...] = ()  # these alone; without any, every client that takes the shared cases

    @property
    def id(self) -> str:
        """What names it in results and on the command line."""
        return f"{self.area}: {self.title}"


CASES: list[Case] = []


def case(
    area: str,
    title: str,
    *,
    over: Mapping[str, Sequence[object]] | None = None,
    quick: bool = False,
    since: str | None = None,
    clients: Sequence[str] = (),
) -> Callable[[Body], Body]:
    """Register a function as a case, or as several: one for each choice of values in `over`.

    A title with `{name}` in it shows that value; values of other names are put behind it.
    """

    def register(body: Body) -> Body:
        names = list(over or {})
        for values in itertools.product(*(over or {}).values()):
            chosen = dict(zip(names, values, strict=True))
            rest = [str(value) for name, value in chosen.items() if f"{{{name}}}" not in title]
            full = title.format(**chosen) + (f" ({', '.join(rest)})" if rest else "")
            made = Case(area, full, body, chosen, quick, since, tuple(clients))
            assert made.id not in {other.id for other in CASES}, f"two cases are called {made.id!r}"
            CASES.append(made)
        return body

    return register


def all_cases() -> list[Case]:
    """Every case of cases/ and ecosystem/, in the order of the files and of the lines in them."""
    for room in ("cases", "ecosystem"):
        package = importlib.import_module(f"compat_tests.matrix.{room}")
        for module in sorted(found.name for found in pkgutil.iter_modules(package.__path__)):
            importlib.import_module(f"{package.__name__}.{module}")
    return CASES


def expect(seen: object, expected: object, what: str = "") -> None:
    """Fail the case unless both are equal."""
    if seen != expected:
        raise Unmet(f"{what + ': ' if what else ''}expected {expected!r}, got {seen!r}")


class Run:
    """One case on one broker: the driver to talk to, names of its own, and topics."""

    def __init__(
        self,
        *,
        client: str,
        bootstrap: str,
        kafka_bootstrap: str,
        prefix: str,
        start: Callable[[int], Driver],
        stage: Stage,
    ) -> None:
        self.client = client
        self.bootstrap = bootstrap
        self.kafka_bootstrap = kafka_bootstrap  # the real Kafka's, whichever broker this run is on
        self._prefix = prefix
        self._start = start
        self._stage = stage
        self._names = itertools.count()
        self._open: list[tuple[str, str]] = []

    @property
    def driver(self) -> Driver:
        """The client under test. Cases of clients without a driver do not ask for it."""
        return self._start(1)

    @property
    def second(self) -> Driver:
        """Another process of the client under test."""
        return self._start(2)

    @property
    def stage(self) -> Driver:
        """Another client, of which all is known to work: for what a case needs but does not test."""
        return self._stage.driver()

    def call(self, call: str, **arguments: object) -> Any:
        """Tell the driver under test; a trailing underscore is dropped from names (`as_`)."""
        given = {name.rstrip("_"): value for name, value in arguments.items()}
        name = str(given.get("as", ""))
        answer = self.driver.call(call, **given)
        if call in OPENING:
            self._open.append((OPENING[call], name))
        elif (call, name) in self._open:
            self._open.remove((call, name))
        return answer

    def fails(self, error: str, call: str, **arguments: object) -> None:
        """The call must end with this error of the protocol."""
        try:
            answer = self.call(call, **arguments)
        except DriverError as raised:
            expect(raised.name, error, f"the error of {call} ({raised.message})")
            return
        raise Unmet(f"{call} was to fail with {error}, but answered {answer!r}")

    def name(self, kind: str = "topic") -> str:
        """A fresh name for a topic, a group or a transactional id; the same on each broker."""
        return f"{self._prefix}-{kind}{next(self._names)}"

    def topic(self) -> str:
        """A fresh name of a topic that does not exist yet."""
        return self.name("topic")

    def group(self) -> str:
        """A fresh name of a group that does not exist yet."""
        return self.name("group")

    def create(self, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        """Make a topic, without the client under test, and wait until it can be used."""
        topic = self.topic()
        self._stage.create_topic(topic, partitions, configs or {})
        return topic

    def until(
        self, observe: Callable[[], T], settled: Callable[[T], bool], seconds: float = PATIENCE_SECONDS
    ) -> T:
        """Observe again and again until it is as wanted; the observation."""
        deadline = time.monotonic() + seconds
        while not settled(seen := observe()):
            if time.monotonic() > deadline:
                raise Unmet(f"still not as expected after {seconds:.0f} s: {seen!r}")
            self._stage.pause(PAUSE_SECONDS)
        return seen

    def close(self) -> None:
        """Close what the case left open; what fails now is no part of the case."""
        for call, name in reversed(self._open):
            try:
                self.driver.call(call, **{"as": name})
            except (DriverError, Unsupported, DriverGone):
                continue
        self._open.clear()


def slug(words: str) -> str:
    """The words as a part of a topic's name."""
    return re.sub(r"[^a-zA-Z0-9]+", "-", words).strip("-").lower()
