"""Broker configs: replicas: how they fetch, when they count as in sync, and the waiting rooms of requests."""

from ottla.config.broker.rows import CLUSTER_WIDE, HIGH, Row, boolean, integer, long, string
from ottla.config.validators import at_least

ROWS: tuple[Row, ...] = (
    integer(
        "default.replication.factor",
        1,
        "Replicas of a topic made without saying how many.",
        in_effect=True,
    ),
    integer(
        "min.insync.replicas",
        1,
        "Default of the topic config of the same name.",
        rule=at_least(1),
        importance=HIGH,
        mode=CLUSTER_WIDE,
        in_effect=True,
    ),
    boolean(
        "unclean.leader.election.enable",
        False,
        "Default of the topic config of the same name.",
        importance=HIGH,
        mode=CLUSTER_WIDE,
    ),
    integer(
        "num.replica.fetchers",
        1,
        "Threads that fetch from each other broker.",
        rule=at_least(1),
        importance=HIGH,
        mode=CLUSTER_WIDE,
    ),
    integer(
        "num.replica.alter.log.dirs.threads",
        None,
        "Threads that move replicas between data directories; one for each directory when not given.",
        importance=HIGH,
    ),
    long(
        "replica.lag.time.max.ms",
        30_000,
        "How long a follower may be behind before it is no longer in sync.",
        importance=HIGH,
    ),
    integer(
        "replica.fetch.max.bytes",
        1_048_576,
        "Bytes of one partition that a follower fetches at once.",
        rule=at_least(0),
    ),
    integer(
        "replica.fetch.min.bytes",
        1,
        "Bytes that a follower's fetch waits for.",
        importance=HIGH,
    ),
    integer(
        "replica.fetch.response.max.bytes",
        10_485_760,
        "Bytes that a follower's whole fetch returns at most.",
        rule=at_least(0),
    ),
    integer(
        "replica.fetch.wait.max.ms",
        500,
        "How long a follower's fetch waits for data.",
        importance=HIGH,
    ),
    integer(
        "replica.fetch.backoff.ms",
        1000,
        "Pause of a follower after a failed fetch.",
        rule=at_least(0),
    ),
    integer(
        "replica.socket.timeout.ms",
        30_000,
        "How long a follower waits on the socket to its leader.",
        importance=HIGH,
    ),
    integer(
        "replica.socket.receive.buffer.bytes",
        65_536,
        "SO_RCVBUF of a follower's socket to its leader.",
        importance=HIGH,
    ),
    long(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "How often high watermarks are written down.",
        importance=HIGH,
        in_effect=True,
    ),
    string(
        "replica.selector.class",
        None,
        "A Java class that picks the replica a client should fetch from; Ottla loads no Java classes.",
    ),
    boolean(
        "follower.fetch.last.tiered.offset.enable",
        False,
        "Whether a new follower starts at the last offset in remote storage.",
        mode=CLUSTER_WIDE,
    ),
    integer(
        "fetch.purgatory.purge.interval.requests",
        1000,
        "Finished fetches that may pile up before the waiting list is purged. Ottla keeps no such list.",
    ),
    integer(
        "producer.purgatory.purge.interval.requests",
        1000,
        "Finished produce requests that may pile up before the waiting list is purged. Ottla keeps no "
        "such list.",
    ),
    integer(
        "delete.records.purgatory.purge.interval.requests",
        1,
        "Finished DeleteRecords that may pile up before the waiting list is purged. Ottla keeps no "
        "such list.",
    ),
    integer(
        "share.fetch.purgatory.purge.interval.requests",
        1000,
        "Finished share fetches that may pile up before the waiting list is purged. Ottla keeps no "
        "such list.",
    ),
)
