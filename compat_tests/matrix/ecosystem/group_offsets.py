"""Offsets that a case gives to a group which has none yet."""

from collections.abc import Mapping

from compat_tests.matrix.case import Run
from compat_tests.matrix.driver import Driver, DriverError

PATIENCE_SECONDS = 120


def set_offsets(run: Run, driver: Driver, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Set a group's offsets as soon as it has a coordinator: the first group of a Kafka has to wait for one."""
    partitions = {str(partition): offset for partition, offset in offsets.items()}

    def done() -> bool:
        try:
            driver.call("alter_group_offsets", group=group, offsets={topic: partitions})
        except DriverError as error:
            if "COORDINATOR" not in error.name and "TimeoutError" not in error.message:
                raise
            return False
        return True

    run.until(done, bool, PATIENCE_SECONDS)
