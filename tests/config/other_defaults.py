"""Defaults that differ from Apache Kafka's on purpose, each with its reason."""

OTHER_DEFAULTS = {
    # A temporary directory, Kafka's default, loses data at the next boot.
    "log.dir": "ottla-data",
    # Kafka's defaults of 3 and 2 need three brokers; the server.properties that comes with it says 1 as well.
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # An answer of a usual size fits; for receiving, the system's own sizing is faster.
    "socket.send.buffer.bytes": "2097152",
    "socket.receive.buffer.bytes": "-1",
}
