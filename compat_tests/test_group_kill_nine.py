"""kill -9 of a broker with groups: acknowledged offsets and assignments are there, and members go on."""

from compat_tests.eventually import eventually
from compat_tests.ottla_process import OttlaProcess
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import RawMember, fetch_offset, wait_for_coordinator
from compat_tests.raw_topics import create_topic
from ottla.wire.errors import ErrorCode

GROUPS = 20


def test_groups_survive() -> None:
    """Every group has its member, its assignment and its last acknowledged offset; nobody joins again."""
    with OttlaProcess() as ottla:
        with RawClient.to(ottla.bootstrap) as raw:
            create_topic(raw, "t", 1)
            wait_for_coordinator(raw, "g0")
        members = [RawMember(ottla.bootstrap, f"g{number}") for number in range(GROUPS)]
        for number, member in enumerate(members):
            member.join()
            member.sync({member.member_id: b"%d" % number})
            for offset in range(number + 1):
                assert member.commit("t", 0, offset) == ErrorCode.NONE
        ottla.kill()
        for member in members:
            member.close()
        ottla.start()
        with RawClient.to(ottla.bootstrap) as raw:
            for number, member in enumerate(members):
                wait_for_coordinator(raw, member.group_id)
                assert fetch_offset(raw, member.group_id, "t", 0).committed_offset == number
                member.raw = raw
                eventually(member.heartbeat, ErrorCode.NONE)
                assert member.sync().assignment == b"%d" % number
                assert member.commit("t", 0, 100) == ErrorCode.NONE
