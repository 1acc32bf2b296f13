"""Groups of consumers by the classic protocol and by that of KIP-848."""

from compat_tests.matrix.calls import attempt, expect_one_of, join, numbered, produce, record, values
from compat_tests.matrix.case import Run, case, expect
from compat_tests.matrix.members import poll_all, read_until, settle, shares, words

AREA = "groups"
ASSIGNORS = ["range", "roundrobin", "sticky", "cooperative-sticky"]
PROTOCOLS = ["classic", "consumer"]
# What two members have of four partitions, where it does not depend on what they had before.
HALVES = {"range": [[0, 1], [2, 3]], "roundrobin": [[0, 2], [1, 3]]}


def committed(run: Run, group: str, topic: str, *partitions: int) -> list[int]:
    """The committed offsets, seen by another client."""
    found = run.stage.call("committed", group=group, topic=topic, partitions=list(partitions))
    return [found[str(partition)] for partition in partitions]


def comes_and_goes(run: Run, **settings: str) -> list[list[int]]:
    """One member, then two, then one again; what the two had."""
    topic, group = run.create(partitions=4), run.group()
    join(run, "first", group, [topic], **settings)  # type: ignore[arg-type]
    expect(settle(run, ["first"], {topic: 4}), {"first": {topic: [0, 1, 2, 3]}})
    join(run, "second", group, [topic], **settings)  # type: ignore[arg-type]
    found = shares(settle(run, ["first", "second"], {topic: 4}), topic)
    expect([len(each) for each in found], [2, 2])
    run.call("leave", as_="first")
    expect(settle(run, ["second"], {topic: 4}), {"second": {topic: [0, 1, 2, 3]}})
    return found


@case(AREA, "{assignor}: a member comes, a member goes", over={"assignor": ASSIGNORS})
def classic(run: Run, assignor: str) -> object:
    found = comes_and_goes(run, assignor=assignor)
    expect(found, HALVES.get(assignor, found))
    return found if assignor in HALVES else None


@case(
    AREA,
    "KIP-848, {assignor}: a member comes, a member goes",
    over={"assignor": ["uniform", "range"]},
    since="4.0",
)
def consumer_protocol(run: Run, assignor: str) -> object:
    found = comes_and_goes(run, protocol="consumer", remote_assignor=assignor)
    expect(found, HALVES.get(assignor, found))
    return found if assignor in HALVES else None


@case(AREA, "{assignor} over two topics", over={"assignor": ["range", "roundrobin"]})
def two_topics(run: Run, assignor: str) -> object:
    topics, group = [run.create(partitions=3), run.create(partitions=3)], run.group()
    for name in ("first", "second"):
        join(run, name, group, topics, assignor=assignor)
    owned = settle(run, ["first", "second"], dict.fromkeys(topics, 3))
    found = [shares(owned, topic) for topic in topics]
    wanted = [[[0, 1], [2]]] * 2 if assignor == "range" else [[[0, 2], [1]], [[0, 2], [1]]]
    expect(found, wanted)
    return found


@case(AREA, "more members than partitions ({protocol})", over={"protocol": PROTOCOLS}, since="4.0")
def idle_member(run: Run, protocol: str) -> object:
    topic, group = run.create(partitions=1), run.group()
    for name in ("first", "second"):
        join(run, name, group, [topic], protocol=protocol)
    found = shares(settle(run, ["first", "second"], {topic: 1}), topic)
    expect(found, [[], [0]])
    return found


@case(AREA, "two members read everything once ({protocol})", over={"protocol": PROTOCOLS}, since="4.0")
def reads_once(run: Run, protocol: str) -> object:
    topic, group = run.create(partitions=4), run.group()
    names = ["first", "second"]
    for name in names:
        join(run, name, group, [topic], protocol=protocol)
    settle(run, names, {topic: 4})
    sent = [each for partition in range(4) for each in numbered(10, partition=partition)]
    produce(run.stage, topic, sent)
    found = read_until(run, names, 40)
    expect(words(found), [f"value-{number}" for number in range(10)] * 4)
    return None


@case(
    AREA,
    "a member starts at the first record ({protocol})",
    over={"protocol": PROTOCOLS},
    since="4.0",
)
def from_the_start(run: Run, protocol: str) -> object:
    topic, group = run.create(), run.group()
    produce(run.stage, topic, numbered(5))
    join(run, "first", group, [topic], protocol=protocol)
    found = words(read_until(run, ["first"], 5))
    expect(found, [f"value-{number}" for number in range(5)])
    return found


@case(
    AREA,
    "commit, and another goes on from there ({protocol})",
    over={"protocol": PROTOCOLS},
    quick=True,
    since="4.0",
)
def resumes(run: Run, protocol: str) -> object:
    topic, group = run.create(), run.group()
    produce(run.stage, topic, numbered(5))
    join(run, "first", group, [topic], protocol=protocol)
    read_until(run, ["first"], 5)
    run.call("commit", as_="first", offsets=None)
    run.call("leave", as_="first")
    expect(committed(run, group, topic, 0), [5])
    produce(run.stage, topic, [record("later")])
    join(run, "second", group, [topic], protocol=protocol)
    found = read_until(run, ["second"], 1)
    expect(words(found), ["later"])
    return found[0]["offset"]


@case(AREA, "commit of offsets that are named ({protocol})", over={"protocol": PROTOCOLS}, since="4.0")
def commits_named(run: Run, protocol: str) -> object:
    topic, group = run.create(partitions=3), run.group()
    join(run, "first", group, [topic], protocol=protocol)
    settle(run, ["first"], {topic: 3})
    run.call("commit", as_="first", offsets={topic: {"0": 7, "2": 0}})
    found = run.call("committed", group=group, topic=topic, partitions=[0, 1, 2])
    expect(found, {"0": 7, "1": -1, "2": 0})
    run.call("commit", as_="first", offsets={topic: {"0": 3}})
    expect(committed(run, group, topic, 0), [3])
    return found


@case(AREA, "nothing is committed where nobody asked for it")
def nothing_committed(run: Run) -> object:
    topic, group = run.create(), run.group()
    produce(run.stage, topic, numbered(3))
    join(run, "first", group, [topic])
    read_until(run, ["first"], 3)
    run.call("leave", as_="first")
    expect(committed(run, group, topic, 0), [-1])
    join(run, "second", group, [topic])
    return words(read_until(run, ["second"], 3))


@case(AREA, "committed offsets of an unknown group")
def committed_unknown(run: Run) -> object:
    found = run.call("committed", group=run.group(), topic=run.create(), partitions=[0])
    expect(found, {"0": -1})
    return found


@case(AREA, "two groups read on their own")
def two_groups(run: Run) -> object:
    topic = run.create()
    produce(run.stage, topic, numbered(3))
    seen = []
    for name in ("first", "second"):
        join(run, name, run.group(), [topic])
        seen.append(words(read_until(run, [name], 3)))
    expect(seen[0], seen[1])
    return seen


@case(AREA, "{isolation} in a group", over={"isolation": ["read_uncommitted", "read_committed"]})
def isolation_levels(run: Run, isolation: str) -> object:
    from compat_tests.matrix.cases.fetch import transactions

    topic, group = run.create(), run.group()
    transactions(run, topic)
    join(run, "first", group, [topic], isolation=isolation)
    found = read_until(run, ["first"], 5 if isolation == "read_committed" else 7)
    wanted = [0, 1, 6, 7, 8] if isolation == "read_committed" else [0, 1, 3, 4, 6, 7, 8]
    expect([each["offset"] for each in found], wanted)
    return values(found)


@case(AREA, "a pattern of topics ({protocol})", over={"protocol": PROTOCOLS}, since="4.0")
def pattern(run: Run, protocol: str) -> object:
    group = run.group()
    prefix = run.name("pattern")
    topics = [f"{prefix}-{each}" for each in ("red", "green", "blue")]
    for each in topics:
        run.stage.call(
            "create_topics",
            topics=[{"name": each, "partitions": 1, "replication": 1, "configs": {}}],
            validate_only=False,
        )
    # The broker learns of them a moment after the controller has answered.
    seen_topics = lambda: set(run.stage.call("metadata", topics=None)["topics"])  # noqa: E731
    run.until(seen_topics, lambda seen: set(topics) <= seen)
    join(run, "first", group, None, pattern=f"^{prefix}-(red|blue)$", protocol=protocol)
    owned = settle(run, ["first"], {topics[0]: 1, topics[2]: 1})
    return [len(each) for each in owned["first"].values()]


@case(
    AREA,
    "a static member comes back to its partitions ({protocol})",
    over={"protocol": PROTOCOLS},
    since="4.0",
)
def static(run: Run, protocol: str) -> object:
    topic, group = run.create(partitions=4), run.group()
    names = ["first", "second"]
    for name in names:
        join(run, name, group, [topic], protocol=protocol, instance_id=f"instance-{name}")
    before = settle(run, names, {topic: 4})
    run.call("leave", as_="second")
    expect(poll_all(run, ["first"], wait_ms=300)["first"], before["first"], "the other after it left")
    join(run, "second", group, [topic], protocol=protocol, instance_id="instance-second")
    expect(settle(run, names, {topic: 4}), before)
    # Which partitions each has is for the client's assignor to say, and may hang on who joined when.
    return [len(each) for each in shares(before, topic)]


@case(AREA, "a static member that is gone is missed after its session")
def missed(run: Run) -> object:
    topic, group = run.create(partitions=2), run.group()
    names = ["first", "second"]
    for name in names:
        join(run, name, group, [topic], instance_id=f"instance-{name}", session_ms=2000)
    settle(run, names, {topic: 2})
    run.call("leave", as_="second")
    expect(settle(run, ["first"], {topic: 2}), {"first": {topic: [0, 1]}})
    return None


@case(AREA, "a second one with the same instance id fences the first")
def fenced(run: Run) -> object:
    topic, group = run.create(), run.group()
    join(run, "first", group, [topic], instance_id="instance")
    settle(run, ["first"], {topic: 1})
    join(run, "second", group, [topic], instance_id="instance")
    settle(run, ["second"], {topic: 1})
    answer = attempt(run, "commit", as_="first", offsets={topic: {"0": 1}})
    # LOCAL if a heartbeat has told the library before: which comes first is a matter of time.
    expect_one_of(answer, ["FENCED_INSTANCE_ID", "LOCAL"])
    expect(committed(run, group, topic, 0), [-1])
    return None


@case(AREA, "classic and new members in one group", since="4.0")
def both_protocols(run: Run) -> object:
    topic, group = run.create(partitions=4), run.group()
    join(run, "classic", group, [topic], assignor="range")
    settle(run, ["classic"], {topic: 4})
    join(run, "new", group, [topic], protocol="consumer")
    found = shares(settle(run, ["classic", "new"], {topic: 4}), topic)
    expect([len(each) for each in found], [2, 2])
    run.call("leave", as_="classic")
    settle(run, ["new"], {topic: 4})
    return None


@case(AREA, "partitions that are added are handed out (KIP-848)", since="4.0")
def added_partitions(run: Run) -> object:
    topic, group = run.create(partitions=1), run.group()
    join(run, "first", group, [topic], protocol="consumer")
    settle(run, ["first"], {topic: 1})
    run.stage.call("create_partitions", topics={topic: 3})
    settle(run, ["first"], {topic: 3})
    return None


@case(AREA, "a member that changes nothing keeps its partitions through the other's commits")
def keeps(run: Run) -> object:
    topic, group = run.create(partitions=2), run.group()
    names = ["first", "second"]
    for name in names:
        join(run, name, group, [topic])
    before = settle(run, names, {topic: 2})
    for name in names:
        run.call("commit", as_=name, offsets={topic: {str(before[name][topic][0]): 1}})
    expect(poll_all(run, names), before)
    expect(committed(run, group, topic, 0, 1), [1, 1])
    return None
