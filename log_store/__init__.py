"""The durable log of a partition, in Apache Kafka's own directory format."""
