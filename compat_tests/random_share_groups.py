"""Random histories of share groups (KIP-932), played to two brokers step by step.

One partition with batches of many sizes is read by every group from its beginning. Two members acquire, accept,
release, reject and renew, rightly and wrongly, close their sessions and open them again; limits of the group change.
After every step both brokers must have answered the same, hold the same state of the share partition, and the same lag.
Acknowledgements travel alone, because Kafka may fetch before or after it took in those that come with a fetch.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from compat_tests.eventually import eventually
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import COORDINATOR_NOT_READY
from compat_tests.raw_share_groups import RawShareConsumer, ack_codes, acquired, configure_group
from compat_tests.raw_topics import describe
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ottla.wire.messages.read_share_group_state import (
    PartitionData,
    ReadShareGroupStateRequest,
    ReadStateData,
)

BATCHES: Final = (1, 1, 7, 2, 15, 3, 1, 40, 5, 12, 1, 1, 30, 9, 60, 4)
RECORDS: Final = sum(BATCHES)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
Rows = list[tuple[int, int, int]]


@dataclass
class Side:
    """One broker: a connection, the topic, and the two members of the group."""

    raw: RawClient
    topic: str
    topic_id: bytes
    leader_epoch: int = 0
    members: list[RawShareConsumer] = field(default_factory=list)


class History:
    """One random history of one group."""

    def __init__(self, seed: int, group_id: str, sides: list[Side]) -> None:
        self.random = random.Random(seed)
        self.group_id = group_id
        self.sides = sides
        self.held: list[Rows] = [[], []]
        self.steps: list[str] = []
        self.is_closing = False
        self.has_fetched = False

    def start(self) -> None:
        """Make the group and its members; they are assigned the partition."""
        for side in self.sides:
            configure_group(
                side.raw,
                self.group_id,
                share_auto_offset_reset="earliest",
                share_assignment_interval_ms="0",
                share_partition_max_record_locks="100",
            )
            side.members = [
                RawShareConsumer(side.raw, self.group_id, name, side.topic) for name in ("m0", "m1")
            ]
            for member in side.members:
                member.join_and_wait(1)

    def play(self, count: int) -> None:
        """So many steps."""
        for _ in range(count):
            self.step()
            self.look()

    def resume(self, raw: RawClient) -> None:
        """Another broker has the directory: members go on, and have neither sessions nor records."""
        (side,) = self.sides
        side.raw = raw
        side.leader_epoch = describe(raw, side.topic).partitions[0].leader_epoch
        self.held = [[], []]
        self.has_fetched = False
        for member in side.members:
            member.raw = raw
            member.session_epoch = 0
            eventually(lambda each=member: each.beat().error_code, ErrorCode.NONE)  # type: ignore[misc]
            assert member.assigned == {side.topic_id: [0]}

    def step(self) -> None:
        actions: list[tuple[int, Callable[[int], None]]] = [
            (8, self.fetch),
            (10, self.acknowledge),
            (2, self.acknowledge_wrongly),
            (1, self.close),
            (1, self.configure),
        ]
        weights, choices = zip(*actions, strict=True)
        self.random.choices(choices, weights)[0](self.random.randrange(2))

    def same(self, ask: Callable[[Side], Any]) -> Any:
        """Ask all, and compare."""
        answers = [ask(side) for side in self.sides]
        self.steps += [f"    {answer}" for answer in answers]
        assert all(answer == answers[0] for answer in answers), "\n".join(self.steps)
        return answers[0]

    # Actions -----------------------------------------------------------------------------------------------

    def fetch(self, number: int) -> None:
        wanted: dict[str, Any] = {
            "max_records": self.random.choice([1, 3, 10, 50, 500]),
            "batch_size": self.random.choice([1, 5, 500]),
            "share_acquire_mode": self.random.choice([0, 0, 1]),
            # Kafka prepares a share partition behind the first fetch of it.
            "max_wait_ms": 50 if self.has_fetched else 10_000,
        }
        self.has_fetched = True
        self.steps.append(f"fetch {number} {wanted}")

        def ask(side: Side) -> Any:
            member = side.members[number]
            answer = member.fetch(side.topic_id, 0, **wanted)
            assert answer.error_code == ErrorCode.NONE
            return [row for rows in acquired(answer).values() for row in rows]

        self.held[number] += self.same(ask)

    def acknowledge(self, number: int) -> None:
        """Some of what the member holds: parts of runs, one type for all or one for each."""
        if not self.held[number]:
            return
        batches = []
        chosen = sorted(self.random.sample(self.held[number], self.random.randint(1, len(self.held[number]))))
        for row in chosen:
            first, last, count = row
            cut = self.random.randint(first, last)
            begin, end = self.random.choice([(first, last), (first, cut), (cut, last), (cut, cut)])
            types = [self.random.choice([ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, GAP])]
            if self.random.random() < 0.4:
                types = [self.random.choice([GAP, ACCEPT, RELEASE, REJECT]) for _ in range(begin, end + 1)]
            batches.append((begin, end, types))
            self.held[number].remove(row)
            for left in ((first, begin - 1, count), (end + 1, last, count)):
                if left[0] <= left[1]:
                    self.held[number].append(left)
        if self.random.random() < 0.1:
            batches = [(first, last, [RENEW]) for first, last, _ in batches]
        self.send(number, batches)

    def acknowledge_wrongly(self, number: int) -> None:
        """What others hold, what nobody holds, too much, or in a bad form."""
        first = self.random.randrange(RECORDS)
        last = first + self.random.choice([0, 0, 3, 20, -1])
        types = self.random.choice([[ACCEPT], [RELEASE], [], [9], [ACCEPT, REJECT]])
        before = [tuple(row) for row in self.held[number]]
        if self.send(number, [(first, last, types)]) == [(0, None)]:
            self.held[number] = [
                (offset, offset, count)
                for begin, end, count in before
                for offset in range(begin, end + 1)
                if not first <= offset <= last
            ]

    def send(self, number: int, batches: list[tuple[int, int, list[int]]]) -> Any:
        self.steps.append(f"acknowledge {number} {batches}")
        is_renew = any(RENEW in types for _, _, types in batches)

        def ask(side: Side) -> Any:
            member = side.members[number]
            answer = member.acknowledge(side.topic_id, 0, *batches, is_renew_ack=is_renew)
            return ack_codes(answer) or answer.error_code

        return self.same(ask)

    def close(self, number: int) -> None:
        """What the member holds is for others; it may come back."""
        self.steps.append(f"close {number}")

        def ask(side: Side) -> Any:
            answer = side.members[number].fetch(
                side.topic_id, share_session_epoch=-1, max_wait_ms=0, max_records=0
            )
            side.members[number].session_epoch = 0
            return answer.error_code

        self.same(ask)
        self.held[number] = []
        self.is_closing = True

    def close_all(self) -> None:
        """Both sessions; what they held is kept as available when this returns."""
        for number in (0, 1):
            self.close(number)
        (side,) = self.sides
        held = [offset for rows in self.held for first, last, _ in rows for offset in range(first, last + 1)]
        assert not held
        seen = []

        def is_quiet() -> bool:
            seen.append(state_of(side, self.group_id))
            return len(seen) > 3 and seen[-1] == seen[-2] == seen[-3]

        eventually(is_quiet, True)

    def configure(self, _: int) -> None:
        name, values = self.random.choice(
            [
                ("share_delivery_count_limit", ("2", "3", "5", "7")),
                ("share_partition_max_record_locks", ("100", "150")),
            ]
        )
        value = self.random.choice(values)
        self.steps.append(f"configure {name}={value}")
        for side in self.sides:
            configure_group(side.raw, self.group_id, **{name: value})

    # What is seen ------------------------------------------------------------------------------------------

    def look(self) -> None:
        """What is kept, and how far the group is. Kafka keeps what a session gives back behind its answer."""
        self.steps.append("look")

        def ask(side: Side) -> Any:
            return state_of(side, self.group_id), offsets_of(side, self.group_id)

        if self.is_closing:
            eventually(lambda: len({repr(ask(side)) for side in self.sides}), 1)
            self.is_closing = False
        self.same(ask)


def state_of(side: Side, group_id: str) -> Any:
    """What the share coordinator has of the partition, once it has read its log."""
    wanted = ReadStateData(side.topic_id, [PartitionData(0, side.leader_epoch)])

    def read() -> Any:
        answer = side.raw.send(ReadShareGroupStateRequest(group_id, [wanted]), 0)
        return answer.results[0].partitions[0]

    eventually(lambda: read().error_code in COORDINATOR_NOT_READY, False)
    row = read()
    kept: list[tuple[int, int, int, int]] = []
    for each in row.state_batches:
        first, alike = each.first_offset, (each.delivery_state, each.delivery_count)
        if kept and kept[-1][1] + 1 == first and kept[-1][2:] == alike:
            first = kept.pop()[0]  # Kafka leaves some neighbours apart
        kept.append((first, each.last_offset, *alike))
    return row.error_code, row.start_offset, kept


def offsets_of(side: Side, group_id: str) -> Any:
    """Start offset and lag, as an admin sees them."""
    wanted = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    (answer,) = side.raw.send(DescribeShareGroupOffsetsRequest(groups=[wanted]), 1).groups
    return [(each.start_offset, each.lag) for topic in answer.topics for each in topic.partitions]
