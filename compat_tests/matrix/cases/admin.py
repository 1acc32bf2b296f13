"""What an administrator asks of groups, records, producers and transactions."""

from typing import Any

from compat_tests.matrix.calls import (
    attempt,
    attempt_of,
    b64,
    expect_one_of,
    fetch,
    join,
    numbered,
    produce,
    record,
    values,
)
from compat_tests.matrix.case import Run, case, expect
from compat_tests.matrix.driver import Unsupported
from compat_tests.matrix.members import read_until, settle

AREA = "admin calls"


def plain(word: str | None) -> str | None:
    """States and types as all libraries spell them when case and dashes do not count."""
    return None if word is None else word.lower().replace("_", "").replace("-", "").replace(" ", "")


def empty_group(run: Run, topic: str, offset: int = 2) -> str:
    """A group that has an offset and no member."""
    group = run.group()
    run.stage.call("alter_group_offsets", group=group, offsets={topic: {"0": offset}})
    return group


def live_group(run: Run, topic: str, partitions: int = 1, **settings: Any) -> str:
    """A group with one member, called `member`, of the client under test."""
    group = run.group()
    join(run, "member", group, [topic], **settings)
    settle(run, ["member"], {topic: partitions})
    return group


def committed(run: Run, group: str, topic: str) -> int:
    return int(run.stage.call("committed", group=group, topic=topic, partitions=[0])["0"])


@case(AREA, "list groups: with members, and without")
def lists_groups(run: Run) -> object:
    topic = run.create()
    live, empty = live_group(run, topic), empty_group(run, topic)
    found = run.call("list_groups")
    expect([group for group in (live, empty) if group not in found], [], "groups that are missing")
    seen = [(plain(found[group]["state"]), plain(found[group]["type"])) for group in (live, empty)]
    expect_one_of(seen[0], [("stable", "classic"), ("stable", None), (None, None)])
    expect_one_of(seen[1], [("empty", "classic"), ("empty", None), (None, None)])
    return seen


@case(AREA, "describe a classic group", quick=True)
def describes_group(run: Run) -> object:
    topic = run.create(partitions=2)
    group = live_group(run, topic, 2, assignor="range")
    found = run.call("describe_group", group=group)
    [member] = found["members"]
    expect((plain(found["state"]), found["protocol"]), ("stable", "range"))
    expect(member["assignment"], {topic: [0, 1]})
    return [plain(found["type"]), member["instance_id"] or None]


@case(AREA, "describe a static member")
def describes_static(run: Run) -> object:
    topic = run.create()
    group = live_group(run, topic, instance_id="its-instance")
    [member] = run.call("describe_group", group=group)["members"]
    if member["instance_id"] is None:
        raise Unsupported("the library does not tell the instance ids of members")
    expect(member["instance_id"], "its-instance")
    return None


@case(AREA, "describe a group of KIP-848", since="4.0")
def describes_consumer_group(run: Run) -> object:
    topic = run.create(partitions=2)
    group = live_group(run, topic, 2, protocol="consumer")
    found = run.call("describe_group", group=group)
    [member] = found["members"]
    expect((plain(found["state"]), found["protocol"]), ("stable", "uniform"))
    expect(member["assignment"], {topic: [0, 1]})
    return plain(found["type"])


@case(AREA, "describe a group without members")
def describes_empty(run: Run) -> object:
    topic = run.create()
    found = run.call("describe_group", group=empty_group(run, topic))
    expect((plain(found["state"]), found["members"]), ("empty", []))
    return [found["protocol"], plain(found["type"])]


@case(AREA, "describe an unknown group", since="4.0")
def describes_unknown(run: Run) -> object:
    found = attempt(run, "describe_group", group=run.group())
    seen = found if isinstance(found, str) else plain(found["state"])
    expect_one_of(seen, ["GROUP_ID_NOT_FOUND", "dead"])
    return seen


@case(AREA, "delete a group")
def deletes_group(run: Run) -> object:
    topic = run.create()
    group = empty_group(run, topic)
    expect(attempt_of(run, group, "delete_groups", groups=[group]), None)
    expect(group in run.stage.call("list_groups"), False)
    expect(committed(run, group, topic), -1)
    return None


@case(AREA, "delete a group with members")
def deletes_live_group(run: Run) -> object:
    group = live_group(run, run.create())
    answer = attempt_of(run, group, "delete_groups", groups=[group])
    expect(answer, "NON_EMPTY_GROUP")
    return answer


@case(AREA, "delete an unknown group")
def deletes_unknown_group(run: Run) -> object:
    group = run.group()
    answer = attempt_of(run, group, "delete_groups", groups=[group])
    expect(answer, "GROUP_ID_NOT_FOUND")
    return answer


@case(AREA, "set the offsets of a group")
def alters_offsets(run: Run) -> object:
    topic, group = run.create(), run.group()
    produce(run.stage, topic, numbered(5))
    run.call("alter_group_offsets", group=group, offsets={topic: {"0": 3}})
    expect(committed(run, group, topic), 3)
    join(run, "member", group, [topic])
    found = read_until(run, ["member"], 2)
    expect(values(found), ["value-3", "value-4"])
    return None


@case(AREA, "set the offsets of a group with members")
def alters_live_offsets(run: Run) -> object:
    topic = run.create()
    group = live_group(run, topic)
    answer = attempt(run, "alter_group_offsets", group=group, offsets={topic: {"0": 3}})
    expect(answer, "UNKNOWN_MEMBER_ID")
    expect(committed(run, group, topic), -1)
    return answer


@case(AREA, "delete the offsets of a group")
def deletes_offsets(run: Run) -> object:
    topic = run.create()
    group = empty_group(run, topic)
    expect(attempt_of(run, "0", "delete_group_offsets", group=group, topic=topic, partitions=[0]), None)
    expect(committed(run, group, topic), -1)
    return None


@case(AREA, "delete the offsets of a topic that members read")
def deletes_read_offsets(run: Run) -> object:
    topic = run.create()
    group = live_group(run, topic)
    run.call("commit", as_="member", offsets={topic: {"0": 1}})
    answer = attempt_of(run, "0", "delete_group_offsets", group=group, topic=topic, partitions=[0])
    expect(answer, "GROUP_SUBSCRIBED_TO_TOPIC")
    return answer


@case(AREA, "delete the offsets of an unknown group")
def deletes_unknown_offsets(run: Run) -> object:
    topic = run.create()
    answer = attempt_of(run, "0", "delete_group_offsets", group=run.group(), topic=topic, partitions=[0])
    expect(answer, "GROUP_ID_NOT_FOUND")
    return answer


@case(AREA, "remove a static member")
def removes_member(run: Run) -> object:
    topic = run.create()
    group = live_group(run, topic, instance_id="its-instance")
    run.call("leave", as_="member")
    run.call("remove_members", group=group, instance_ids=["its-instance"])
    found = run.stage.call("describe_group", group=group)
    expect((plain(found["state"]), found["members"]), ("empty", []))
    return None


@case(AREA, "remove a member that is not there")
def removes_unknown_member(run: Run) -> object:
    topic = run.create()
    group = live_group(run, topic, instance_id="its-instance")
    answer = attempt(run, "remove_members", group=group, instance_ids=["another"])
    expect_one_of(answer, ["UNKNOWN_MEMBER_ID"])
    return answer


@case(AREA, "delete records", quick=True)
def deletes_records(run: Run) -> object:
    topic = run.create(partitions=2)
    for partition in range(2):
        produce(run.stage, topic, numbered(5, partition=partition))
    found = run.call("delete_records", topic=topic, before={"0": 3, "1": 0})
    expect(found, {"0": 3, "1": 0})
    expect(values(fetch(run.stage, topic, 0, 3)), ["value-3", "value-4"])
    return found


@case(AREA, "delete all records")
def deletes_all_records(run: Run) -> object:
    topic = run.create()
    produce(run.stage, topic, numbered(5))
    found = run.call("delete_records", topic=topic, before={"0": -1})
    expect(found, {"0": 5})
    seen = [
        run.stage.call("list_offsets", topic=topic, partition=0, at=at)["offset"]
        for at in ("earliest", "latest")
    ]
    expect(seen, [5, 5])
    return found


@case(AREA, "delete records up to an offset that was never there", over={"offset": [6, -5]})
def deletes_too_many_records(run: Run, offset: int) -> object:
    topic = run.create()
    produce(run.stage, topic, numbered(5))
    answer = attempt_of(run, "0", "delete_records", topic=topic, before={"0": offset})
    expect_one_of(answer, ["OFFSET_OUT_OF_RANGE"] if offset > 0 else ["OFFSET_OUT_OF_RANGE", "LOCAL"])
    return answer


@case(AREA, "delete records that are deleted already")
def deletes_records_again(run: Run) -> object:
    topic = run.create()
    produce(run.stage, topic, numbered(5))
    seen = [run.call("delete_records", topic=topic, before={"0": offset})["0"] for offset in (4, 2)]
    expect(seen, [4, 4])
    return seen


@case(AREA, "delete records of a compacted topic")
def deletes_compacted_records(run: Run) -> object:
    topic = run.create(configs={"cleanup.policy": "compact"})
    produce(run.stage, topic, [record(b"v", b"k")])
    answer = attempt_of(run, "0", "delete_records", topic=topic, before={"0": 1})
    expect(answer, "POLICY_VIOLATION")
    return answer


@case(AREA, "the log directories of a topic")
def log_dirs(run: Run) -> object:
    topic = run.create(partitions=2)
    produce(run.stage, topic, numbered(5))
    found = run.call("describe_log_dirs", topics=[topic])[topic]
    expect(sorted(found), ["0", "1"])
    expect((found["0"]["size"] > 100, found["1"]["size"]), (True, 0))
    return [(found[each]["lag"], found[each]["future"]) for each in sorted(found)]


@case(AREA, "the producers of a partition")
def producers(run: Run) -> object:
    topic = run.create()
    expect(run.call("describe_producers", topic=topic, partition=0), [])
    produce(run.stage, topic, numbered(3), idempotent=True)
    name = run.name("txn")
    run.stage.call("txn_init", as_=name, id=name, timeout_ms=60_000)
    run.stage.call("txn_begin", as_=name)
    run.stage.call("txn_send", as_=name, topic=topic, partition=0, values=[b64("v")])
    found = sorted(
        run.call("describe_producers", topic=topic, partition=0), key=lambda each: each["producer_id"]
    )
    run.stage.call("txn_abort", as_=name)
    run.stage.call("txn_close", as_=name)
    expect([(each["in_transaction"], each["last_sequence"]) for each in found], [(False, 2), (True, 0)])
    expect(found[0]["producer_id"] >= 0, True)
    return [each["epoch"] for each in found]


@case(AREA, "transactions, while they run and after")
def transactions(run: Run) -> object:
    topic, name = run.create(partitions=2), run.name("txn")
    run.stage.call("txn_init", as_=name, id=name, timeout_ms=60_000)
    run.stage.call("txn_begin", as_=name)
    run.stage.call("txn_send", as_=name, topic=topic, partition=1, values=[b64("v")])
    listed = run.call("list_transactions").get(name)
    expect(plain(listed), "ongoing")
    run.stage.call("txn_commit", as_=name)
    run.until(lambda: plain(run.call("list_transactions").get(name)), lambda seen: seen == "completecommit")
    run.stage.call("txn_close", as_=name)
    return None


@case(AREA, "describe transactions")
def describes_transactions(run: Run) -> object:
    topic, name = run.create(partitions=2), run.name("txn")
    run.stage.call("txn_init", as_=name, id=name, timeout_ms=60_000)
    run.stage.call("txn_begin", as_=name)
    run.stage.call("txn_send", as_=name, topic=topic, partition=1, values=[b64("v")])
    found = run.call("describe_transactions", ids=[name])[name]
    expect((plain(found["state"]), found["topics"]), ("ongoing", {topic: [1]}))
    run.stage.call("txn_abort", as_=name)
    run.stage.call("txn_close", as_=name)
    return None


@case(AREA, "describe a transactional id that is not there")
def describes_unknown_transaction(run: Run) -> object:
    name = run.name("txn")
    answer = attempt_of(run, name, "describe_transactions", ids=[name])
    expect(answer, "TRANSACTIONAL_ID_NOT_FOUND")
    return answer


@case(AREA, "elect {kind} leaders where none is needed", over={"kind": ["preferred", "unclean"]})
def elects(run: Run, kind: str) -> object:
    topic = run.create()
    found = attempt(run, "elect_leaders", kind=kind, topics={topic: [0]})
    seen = found if isinstance(found, str) else found[topic]["0"]
    expect_one_of(seen, ["ELECTION_NOT_NEEDED", None])  # some libraries count that as done
    return seen


@case(AREA, "elect the leader of an unknown topic")
def elects_unknown(run: Run) -> object:
    topic = run.topic()
    found = attempt(run, "elect_leaders", kind="preferred", topics={topic: [0]})
    seen = found if isinstance(found, str) else found[topic]["0"]
    expect(seen, "UNKNOWN_TOPIC_OR_PARTITION")
    return seen


@case(AREA, "ACLs, without an authorizer")
def acls(run: Run) -> object:
    answer = attempt(run, "describe_acls")
    expect_one_of(answer, ["SECURITY_DISABLED", []])  # librdkafka has found none
    return answer
