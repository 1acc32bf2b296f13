"""Classic groups in a data directory that two brokers use in turns: members, assignments and offsets stay."""

from pathlib import Path

from compat_tests.eventually import eventually
from compat_tests.kafka.real import RealKafka
from compat_tests.ottla_process import OttlaProcess
from compat_tests.raw_client import RawClient
from compat_tests.raw_groups import RawMember, fetch_offset, wait_for_coordinator
from compat_tests.raw_topics import create_topic, describe
from ottla.wire.errors import ErrorCode


def go_on(raw: RawClient, member: RawMember, assignment: bytes, offset: int) -> None:
    """The member is in its generation with its part, the offset is the last one, and a further one can be committed."""
    wait_for_coordinator(raw, "g")
    member.raw = raw
    eventually(member.heartbeat, ErrorCode.NONE)
    assert member.sync().assignment == assignment
    found = fetch_offset(raw, "g", "t", 0)
    assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (offset, 0, f"m{offset}")
    assert member.commit("t", 0, offset + 1, f"m{offset + 1}", leader_epoch=0) == ErrorCode.NONE


def test_groups_go_on_under_the_other_broker(tmp_path: Path) -> None:
    """Ottla's group under Kafka, a new generation there, and back."""
    data_dir = tmp_path / "data"
    with OttlaProcess(data_dir) as ottla, RawClient.to(ottla.bootstrap) as raw:
        create_topic(raw, "t", 1)
        node = str(describe(raw, "t").partitions[0].leader_id)
        wait_for_coordinator(raw, "g")
        member = RawMember(ottla.bootstrap, "g", instance_id="i", session_timeout_ms=60_000)
        member.join()
        member.sync({member.member_id: b"by ottla"})
        assert member.commit("t", 0, 1, "m1", leader_epoch=0) == ErrorCode.NONE
        member.close()
        assert ottla.stop() == 0

    with RealKafka(data_dir, {"node.id": node}) as kafka, RawClient.to(kafka.bootstrap) as raw:
        go_on(raw, member, b"by ottla", 1)
        assert member.join().generation_id == 2
        member.sync({member.member_id: b"by kafka"})
        kafka.stop()

    with OttlaProcess(data_dir) as ottla, RawClient.to(ottla.bootstrap) as raw:
        go_on(raw, member, b"by kafka", 2)
        assert member.generation_id == 2
