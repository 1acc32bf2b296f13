"""Broker configs: streams groups (KIP-1071)."""

from ottla.config.broker.rows import CLUSTER_WIDE, MAX_INT, Row, integer
from ottla.config.validators import at_least

ROWS: tuple[Row, ...] = (
    integer(
        "group.streams.max.size",
        MAX_INT,
        "Most members of a streams group.",
        rule=at_least(1),
    ),
    integer(
        "group.streams.session.timeout.ms",
        45_000,
        "Time without heartbeat after which a member of a streams group is removed.",
        rule=at_least(1),
    ),
    integer(
        "group.streams.min.session.timeout.ms",
        45_000,
        "Smallest session timeout that a streams group may be given.",
        rule=at_least(1),
    ),
    integer(
        "group.streams.max.session.timeout.ms",
        60_000,
        "Largest session timeout that a streams group may be given.",
        rule=at_least(1),
    ),
    integer(
        "group.streams.heartbeat.interval.ms",
        5000,
        "How often members of a streams group are told to send a heartbeat.",
        rule=at_least(1),
    ),
    integer(
        "group.streams.min.heartbeat.interval.ms",
        5000,
        "Smallest heartbeat interval that a streams group may be given.",
        rule=at_least(1),
    ),
    integer(
        "group.streams.max.heartbeat.interval.ms",
        15_000,
        "Largest heartbeat interval that a streams group may be given.",
        rule=at_least(1),
    ),
    integer(
        "group.streams.num.standby.replicas",
        0,
        "Standby copies of each stateful task.",
        rule=at_least(0),
    ),
    integer(
        "group.streams.max.standby.replicas",
        2,
        "Most standby copies that a streams group may be given.",
        rule=at_least(0),
    ),
    integer(
        "group.streams.initial.rebalance.delay.ms",
        3000,
        "How long the first assignment of an empty streams group waits for more members.",
        rule=at_least(0),
    ),
    integer(
        "group.streams.assignment.interval.ms",
        1000,
        "Shortest time between two assignments of a streams group.",
        rule=at_least(0),
        mode=CLUSTER_WIDE,
    ),
    integer(
        "group.streams.min.assignment.interval.ms",
        0,
        "Smallest assignment interval that a streams group may be given.",
        rule=at_least(0),
    ),
    integer(
        "group.streams.max.assignment.interval.ms",
        15_000,
        "Largest assignment interval that a streams group may be given.",
        rule=at_least(0),
    ),
)
