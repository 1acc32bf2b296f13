"""Metadata records of the nodes: brokers coming, fenced, unfenced and leaving, and controllers."""

from ottla.wire.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Message,
    array,
    field,
    record,
    structure,
)
from ottla.wire.uuids import Uuid


@structure
class BrokerEndpoint:
    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)
    security_protocol: int = field(INT16)


@structure
class BrokerFeature:
    name: str = field(STRING)
    min_supported_version: int = field(INT16)
    max_supported_version: int = field(INT16)


@record(api_key=0, versions=(0, 4), flexible=0)
class RegisterBrokerRecord(Message):
    """A broker's registration; its epoch is the offset of this record."""

    broker_id: int = field(INT32)
    is_migrating_zk_broker: bool = field(BOOL, "2+", default=False)
    incarnation_id: Uuid = field(UUID)
    broker_epoch: int = field(INT64)
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint)
    features: list[BrokerFeature] = array(BrokerFeature)
    rack: str | None = field(STRING, nullable="0+")
    fenced: bool = field(BOOL, default=True)
    in_controlled_shutdown: bool = field(BOOL, "1+", default=False)
    log_dirs: list[Uuid] = array(UUID, "3+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = array(UUID, "4+", nullable="4+", default=None, tag=1)


@record(api_key=1, versions=(0, 0), flexible=0)
class UnregisterBrokerRecord(Message):
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64)


@record(api_key=7, versions=(0, 0), flexible=0)
class FenceBrokerRecord(Message):
    id: int = field(INT32)
    epoch: int = field(INT64)


@record(api_key=8, versions=(0, 0), flexible=0)
class UnfenceBrokerRecord(Message):
    id: int = field(INT32)
    epoch: int = field(INT64)


FENCE = 1
UNFENCE = -1
IN_CONTROLLED_SHUTDOWN = 1


@record(api_key=17, versions=(0, 3), flexible=0)
class BrokerRegistrationChangeRecord(Message):
    """What changed in a registration: `fenced` is 1 to fence, -1 to unfence, 0 to leave it alone."""

    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64)
    fenced: int = field(INT8, tag=0)
    in_controlled_shutdown: int = field(INT8, "1+", tag=1)
    log_dirs: list[Uuid] = array(UUID, "2+", tag=2)
    cordoned_log_dirs: list[Uuid] | None = array(UUID, "3+", nullable="3+", default=None, tag=3)


@structure
class ControllerEndpoint:
    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)
    security_protocol: int = field(INT16)


@structure
class ControllerFeature:
    name: str = field(STRING)
    min_supported_version: int = field(INT16)
    max_supported_version: int = field(INT16)


@record(api_key=27, versions=(0, 0), flexible=0)
class RegisterControllerRecord(Message):
    controller_id: int = field(INT32)
    incarnation_id: Uuid = field(UUID)
    zk_migration_ready: bool = field(BOOL)
    end_points: list[ControllerEndpoint] = array(ControllerEndpoint)
    features: list[ControllerFeature] = array(ControllerFeature)
