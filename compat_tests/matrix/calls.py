"""The calls as cases make them: with all their arguments, and answers that are easy to compare."""

import base64
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from compat_tests.matrix.case import Run, Unmet
from compat_tests.matrix.driver import Driver, DriverError

LOCAL = "LOCAL"
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def b64(data: bytes | str | None) -> str | None:
    """Bytes for a call."""
    return (
        None if data is None else base64.b64encode(data.encode() if isinstance(data, str) else data).decode()
    )


def text(data: str | None) -> str | None:
    """Bytes of an answer, as words."""
    return None if data is None else base64.b64decode(data).decode()


def record(
    value: bytes | str | None,
    key: bytes | str | None = None,
    *,
    partition: int | None = 0,
    headers: Iterable[tuple[str, bytes | None]] = (),
    timestamp: int | None = None,
) -> dict[str, Any]:
    """A record for `produce`."""
    return {
        "partition": partition,
        "key": b64(key),
        "value": b64(value),
        "headers": [[name, b64(data)] for name, data in headers],
        "timestamp": timestamp,
    }


def numbered(count: int, *, size: int = 0, partition: int = 0) -> list[dict[str, Any]]:
    """Records whose values tell them apart."""
    return [record(f"value-{number}".ljust(size, "."), partition=partition) for number in range(count)]


def share_from_the_beginning(run: Run, group: str) -> None:
    """Have a share group begin with the first record, and wait until the broker goes by it.

    A Kafka on a busy machine learns of a config seconds after it was altered, and a group that has begun at the
    end until then stays there.
    """
    name = "share.auto.offset.reset"
    run.stage.call("alter_configs", kind="group", name=group, set={name: "earliest"}, delete=[])
    run.until(
        lambda: run.stage.call("describe_configs", kind="group", name=group)[name]["value"],
        lambda value: value == "earliest",
    )


def produce(
    run: Run | Driver,
    topic: str,
    records: list[dict[str, Any]],
    *,
    acks: int = -1,
    codec: str = "none",
    idempotent: bool = False,
    max_request_bytes: int | None = None,
) -> list[dict[str, Any]]:
    """Send them all with one producer."""
    found: list[dict[str, Any]] = run.call(
        "produce",
        topic=topic,
        records=records,
        acks=acks,
        codec=codec,
        idempotent=idempotent,
        max_request_bytes=max_request_bytes,
    )
    return found


def fetch(
    run: Run | Driver,
    topic: str,
    partition: int = 0,
    offset: int = 0,
    count: int | None = None,
    *,
    isolation: str = "read_uncommitted",
) -> list[dict[str, Any]]:
    """Read by assignment."""
    found: list[dict[str, Any]] = run.call(
        "fetch", topic=topic, partition=partition, offset=offset, count=count, isolation=isolation
    )
    return found


def values(records: list[dict[str, Any]]) -> list[str | None]:
    """The values of records, as words."""
    return [text(each["value"]) for each in records]


def attempt(run: Run, call: str, **arguments: object) -> Any:
    """The answer, or the name of the error."""
    try:
        return run.call(call, **arguments)
    except DriverError as error:
        return error.name


def attempt_of(run: Run, key: str, call: str, **arguments: object) -> Any:
    """What a call with several answers says of one of them: null or a name; its own error stands for all."""
    answer = attempt(run, call, **arguments)
    return answer[key] if isinstance(answer, Mapping) else answer


def expect_one_of(seen: object, allowed: Collection[object], what: str = "") -> None:
    """Fail the case unless it is one of these: libraries may refuse by themselves what a broker would refuse."""
    if seen not in allowed:
        raise Unmet(f"{what + ': ' if what else ''}expected one of {list(allowed)!r}, got {seen!r}")


def join(
    run: Run,
    name: str,
    group: str,
    topics: list[str] | None,
    *,
    pattern: str | None = None,
    assignor: str | None = None,
    protocol: str = "classic",
    remote_assignor: str | None = None,
    instance_id: str | None = None,
    isolation: str = "read_uncommitted",
    session_ms: int | None = None,
) -> None:
    """Make a member."""
    run.call(
        "join",
        as_=name,
        group=group,
        topics=topics,
        pattern=pattern,
        assignor=assignor,
        protocol=protocol,
        remote_assignor=remote_assignor,
        instance_id=instance_id,
        isolation=isolation,
        session_ms=session_ms,
    )


def create_spec(
    name: str, partitions: int = 1, replication: int = 1, configs: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A topic for `create_topics`."""
    return {"name": name, "partitions": partitions, "replication": replication, "configs": configs or {}}


def create(run: Run, spec: dict[str, Any], *, validate_only: bool = False) -> Any:
    """Create a topic with the client under test: null, or the name of the error."""
    return attempt_of(run, spec["name"], "create_topics", topics=[spec], validate_only=validate_only)


def metadata(run: Run | Driver, *topics: str) -> dict[str, Any]:
    """Metadata of these topics."""
    found: dict[str, Any] = run.call("metadata", topics=list(topics))
    return found
