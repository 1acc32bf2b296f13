"""What both brokers of the matrix are told, so that nobody waits for what Kafka does only now and then."""

SETTINGS = {
    # Kafka looks for transactions that have timed out every ten seconds.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    # Members of the new protocols have their heartbeats from the broker: five seconds.
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "200",
    # A member that is gone is missed after six seconds at the earliest.
    "group.min.session.timeout.ms": "1000",
}
