"""Server-side assignors: pure functions from members, their subscriptions and their last assignment to a new one.

`ASSIGNORS` is the table behind `group.consumer.assignors`, by the names that clients send.
"""

from collections.abc import Mapping
from typing import Final

from ottla.group_coordinator.consumer.assignors.range import assign_range
from ottla.group_coordinator.consumer.assignors.spec import Assignor
from ottla.group_coordinator.consumer.assignors.uniform import assign_uniform

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}
