"""`kcat -P`, `kcat -C` and `kcat -Q`.

kcat takes partition, headers and whether empty means null for a whole command, so records of a partition that agree in
these and follow each other are sent by one command, and where they were stored is what it says with `-vv`.
It sets no timestamps.
"""

import itertools
import json
import re
import subprocess
from typing import Any

from compat_tests.matrix.drivers.kcat_driver.command import Command, Gone
from compat_tests.matrix.drivers.serving import PATIENCE_SECONDS, Refused, Unsupported, decoded, encoded

MESSAGE_END, KEY_END, RECORD_END = b"<~message~>", b"<~key~>", b"<~record~>"
FORMAT = b"%o %T %K %S\n%k%s%h" + RECORD_END
OUTCOME = re.compile(
    r"% Message delivered to partition (?P<partition>\d+)(?: \(offset (?P<offset>-?\d+)\))?"
    r"|% Delivery failed for message: (?P<failure>.*)"
)


class Records(Command):
    """One command, or some, for each call."""

    def produce(
        self,
        topic: str,
        records: list[dict[str, Any]],
        acks: int = -1,
        codec: str = "none",
        idempotent: bool = False,
        max_request_bytes: int | None = None,
    ) -> list[dict[str, Any]]:
        settings = ["-z", codec, "-X", f"acks={acks}", "-X", f"enable.idempotence={str(idempotent).lower()}"]
        if max_request_bytes is not None:
            settings += ["-X", f"message.max.bytes={max_request_bytes}"]
        found: dict[int, dict[str, Any]] = {}
        by_partition = sorted(range(len(records)), key=lambda number: _partition(records[number], number))
        for _, numbers in itertools.groupby(by_partition, lambda number: _alike(records[number], number)):
            alike = list(numbers)
            found |= zip(alike, self._produce([records[n] for n in alike], topic, settings), strict=True)
        return [found[number] for number in range(len(records))]

    def _produce(
        self, records: list[dict[str, Any]], topic: str, settings: list[str]
    ) -> list[dict[str, Any]]:
        options: list[str | bytes] = ["-P", "-t", topic, "-E", "-vv", "-D", MESSAGE_END, *settings]
        if records[0].get("partition") is not None:
            options += ["-p", str(records[0]["partition"])]
        for name, value in records[0].get("headers") or []:
            data = decoded(value)
            if data is not None and b"\0" in data:
                raise Unsupported("a header on kcat's command line has no zero bytes")
            options += ["-H", name.encode() + (b"" if data is None else b"=" + data)]
        keyed, null = _shape(records[0])
        options += ["-K", KEY_END] if keyed else []
        options += ["-Z"] if null else []
        lines = [
            ((decoded(each.get("key")) or b"") + KEY_END if keyed else b"")
            + (decoded(each.get("value")) or b"")
            for each in records
        ]
        done = subprocess.run(
            [*self.command, *options],
            input=MESSAGE_END.join(lines),
            capture_output=True,
            timeout=PATIENCE_SECONDS,
        )
        words = done.stderr.decode(errors="replace")
        outcomes = [self._outcome(match) for match in OUTCOME.finditer(words)]
        if len(outcomes) > len(records):
            raise Gone(words)
        # What it did not get as far as sending it has refused itself.
        return outcomes + [{"error": "LOCAL"}] * (len(records) - len(outcomes))

    def _outcome(self, match: re.Match[str]) -> dict[str, Any]:
        if match["failure"] is not None:
            return {"error": self.name_of(match["failure"])}
        return {"partition": int(match["partition"]), "offset": int(match["offset"] or -1)}

    def fetch(
        self, topic: str, partition: int, offset: int, count: int | None, isolation: str | None = None
    ) -> list[dict[str, Any]]:
        options: list[str | bytes] = ["-C", "-q", "-t", topic, "-p", str(partition), "-o", str(offset)]
        options += ["-X", f"isolation.level={isolation or 'read_uncommitted'}", "-X", "fetch.wait.max.ms=50"]
        options += ["-X", "topic.auto.offset.reset=error", "-f", FORMAT]
        options += ["-e"] if count is None else ["-c", str(count)]
        return _taken_apart(self.run_bytes(*options))

    def list_offsets(self, topic: str, partition: int, at: str | int) -> dict[str, int]:
        logical = {"earliest": -2, "latest": -1}
        if isinstance(at, str) and at not in logical:
            raise Unsupported(f"kcat -Q does not look for the offset of {at}")
        time = logical[at] if isinstance(at, str) else at
        answer = json.loads(self.run("-Q", "-J", "-t", f"{topic}:{partition}:{time}"))[topic][str(partition)]
        if "error" in answer:
            raise Refused(self.name_of(str(answer["error"])), str(answer["error"]))
        return {"offset": answer["offset"], "timestamp": -1}


def _shape(record: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the record needs a key delimiter, and whether what is empty in it is null."""
    if record.get("timestamp") is not None:
        raise Unsupported("kcat sets no timestamps")
    key, value = decoded(record.get("key")), decoded(record.get("value"))
    if value is None:
        if key == b"":
            raise Unsupported("kcat makes all empty parts of a record null, or none")
        return True, True
    if key is None:
        if value == b"":
            raise Unsupported("kcat skips an empty line")
        return False, False
    return True, False


def _partition(record: dict[str, Any], number: int) -> int:
    """Sorts by partition. Without one, a record is alone: only within a partition does kcat tell of them in order."""
    return -1 - number if record.get("partition") is None else int(record["partition"])


def _alike(record: dict[str, Any], number: int) -> tuple[Any, ...]:
    """Records that follow each other in a partition with the same of this may share a command."""
    return _partition(record, number), json.dumps(record.get("headers") or []), _shape(record)


def _taken_apart(printed: bytes) -> list[dict[str, Any]]:
    found = []
    rest = printed
    while rest:
        line, _, rest = rest.partition(b"\n")
        offset, timestamp, key_size, value_size = map(int, line.split())
        key, rest = _cut(rest, key_size)
        value, rest = _cut(rest, value_size)
        headers, _, rest = rest.partition(RECORD_END)
        found.append(
            {
                "offset": offset,
                "key": encoded(key),
                "value": encoded(value),
                "headers": [_header(each) for each in headers.split(b",")] if headers else [],
                "timestamp": timestamp,
            }
        )
    return found


def _cut(data: bytes, size: int) -> tuple[bytes | None, bytes]:
    return (None, data) if size < 0 else (data[:size], data[size:])


def _header(printed: bytes) -> list[str | None]:
    name, _, value = printed.partition(b"=")
    return [name.decode(), None if value == b"NULL" else encoded(value)]
