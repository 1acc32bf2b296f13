"""Broker configs: quotas and metrics."""

from ottla.config.broker.rows import CLUSTER_WIDE, LOW, Row, integer, java_class, list_of, long, string
from ottla.config.validators import ValidList, at_least

ROWS: tuple[Row, ...] = (
    integer(
        "quota.window.num",
        11,
        "Samples kept for client quotas.",
        rule=at_least(1),
        importance=LOW,
    ),
    integer(
        "quota.window.size.seconds",
        1,
        "Seconds that a sample of client quotas covers.",
        rule=at_least(1),
        importance=LOW,
    ),
    integer(
        "replication.quota.window.num",
        11,
        "Samples kept for replication quotas.",
        rule=at_least(1),
        importance=LOW,
    ),
    integer(
        "replication.quota.window.size.seconds",
        1,
        "Seconds that a sample of replication quotas covers.",
        rule=at_least(1),
        importance=LOW,
    ),
    integer(
        "alter.log.dirs.replication.quota.window.num",
        11,
        "Samples kept for the quota of moves between data directories.",
        rule=at_least(1),
        importance=LOW,
    ),
    integer(
        "alter.log.dirs.replication.quota.window.size.seconds",
        1,
        "Seconds that a sample of that quota covers.",
        rule=at_least(1),
        importance=LOW,
    ),
    integer(
        "controller.quota.window.num",
        11,
        "Samples kept for quotas on topic changes.",
        rule=at_least(1),
        importance=LOW,
    ),
    integer(
        "controller.quota.window.size.seconds",
        1,
        "Seconds that a sample of those quotas covers.",
        rule=at_least(1),
        importance=LOW,
    ),
    java_class(
        "client.quota.callback.class",
        None,
        "A Java class that decides quotas; Ottla loads no Java classes.",
        importance=LOW,
    ),
    list_of(
        "metric.reporters",
        ("org.apache.kafka.common.metrics.JmxReporter",),
        "Java classes that report metrics; Ottla loads no Java classes.",
        rule=ValidList(),
        importance=LOW,
        mode=CLUSTER_WIDE,
    ),
    integer(
        "metrics.num.samples",
        2,
        "Samples kept for each metric.",
        rule=at_least(1),
        importance=LOW,
    ),
    long(
        "metrics.sample.window.ms",
        30_000,
        "Time that a sample of a metric covers.",
        rule=at_least(1),
        importance=LOW,
    ),
    string(
        "metrics.recording.level",
        "INFO",
        "Lowest level of metrics that are recorded.",
        importance=LOW,
    ),
    list_of(
        "kafka.metrics.reporters",
        (),
        "Java classes that report Yammer metrics; Ottla loads no Java classes.",
        rule=ValidList(),
        importance=LOW,
    ),
    integer(
        "kafka.metrics.polling.interval.secs",
        10,
        "How often those reporters are polled.",
        rule=at_least(1),
        importance=LOW,
    ),
)
