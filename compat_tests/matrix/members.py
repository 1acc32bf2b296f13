"""Members of groups, as cases deal with them: polled in turn until they have settled."""

from typing import Any

from compat_tests.matrix.calls import text
from compat_tests.matrix.case import Run

POLL_MS = 50
Owned = dict[str, dict[str, list[int]]]
Records = list[dict[str, Any]]


def poll_all(run: Run, names: list[str], records: Records | None = None, wait_ms: int = POLL_MS) -> Owned:
    """One poll of each member: what each owns. What they read is added to `records`."""
    owned: Owned = {}
    for name in names:
        found = run.call("poll", as_=name, wait_ms=wait_ms)
        owned[name] = {topic: sorted(each) for topic, each in found["assignment"].items() if each}
        if records is not None:
            records += found["records"]
    return owned


def settle(run: Run, names: list[str], topics: dict[str, int], records: Records | None = None) -> Owned:
    """Poll until every partition of the topics has one owner among the members, in two rounds alike."""
    before: Owned = {}

    def settled(owned: Owned) -> bool:
        nonlocal before
        places = sorted(
            (topic, partition)
            for member in owned.values()
            for topic, partitions in member.items()
            for partition in partitions
        )
        every = sorted((topic, partition) for topic, count in topics.items() for partition in range(count))
        # Members without any have settled, too, when the others own all, unless there is enough for all of them.
        enough = all(owned.values()) or len(every) < len(names)
        same, before = owned == before, owned
        return places == every and enough and same

    return run.until(lambda: poll_all(run, names, records), settled)


def shares(owned: Owned, topic: str) -> list[list[int]]:
    """What the members own of a topic, whoever has which."""
    return sorted(each.get(topic, []) for each in owned.values())


def read_until(run: Run, names: list[str], count: int, records: Records | None = None) -> Records:
    """Poll the members until they have read so many records in all."""
    found: Records = [] if records is None else records
    if len(found) < count:
        run.until(lambda: poll_all(run, names, found, 500), lambda _: len(found) >= count)
    return found


def words(records: Records) -> list[str | None]:
    """The values in the order of partitions and offsets."""
    return [
        text(each["value"])
        for each in sorted(records, key=lambda r: (r["topic"], r["partition"], r["offset"]))
    ]
