"""kill -9 in the middle of a load: what was acknowledged is there, at its offset, and with idempotence just once."""

import pytest
from kafka import KafkaAdminClient

from compat_tests.clients.confluent_client import ConfluentClient
from compat_tests.load import Load
from compat_tests.ottla_process import OttlaProcess
from compat_tests.test_dump_log_segments import dump

ROUNDS = 3
PARTITIONS = 2


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_acknowledged_records_survive(idempotent: bool) -> None:
    """Killed and restarted several times under load, on the same directory and port."""
    # Small segments: the crash also meets segments that were rolled, and indexes of several files.
    with OttlaProcess(properties={"log.segment.bytes": "1048576"}) as ottla:
        admin = KafkaAdminClient(bootstrap_servers=ottla.bootstrap)
        admin.create_topics({"load": {"num_partitions": PARTITIONS}}, wait_for_metadata=True)
        admin.close()
        with Load(ottla.bootstrap, "load", partitions=PARTITIONS, idempotent=idempotent) as load:
            for _ in range(ROUNDS):
                load.wait_for_acknowledgements(3000)
                ottla.kill()
                ottla.start()
            load.wait_for_acknowledgements(3000)
        assert load.failed == []
        assert len(load.acknowledged) == load.sent
        for partition in range(PARTITIONS):
            stored = ConfluentClient().read(ottla.bootstrap, "load", partition)
            assert [record.offset for record in stored] == list(range(len(stored)))
            values = {record.offset: record.value for record in stored}
            acknowledged = {
                value: offset for (where, value), offset in load.acknowledged.items() if where == partition
            }
            misplaced = [value for value, offset in acknowledged.items() if values.get(offset) != value]
            assert misplaced == []
            if idempotent:
                assert len(stored) == len(acknowledged)
                numbers = [int(record.value.partition(b"-")[2]) for record in stored if record.value]
                assert numbers == sorted(numbers)
        assert ottla.stop() == 0
        segments = sorted(ottla.data_dir.glob("load-*/*.log"))
        printed = dump("--deep-iteration", "--files", ",".join(map(str, segments)))
        assert printed.count("isvalid: true") == printed.count("isvalid: ") > 0
