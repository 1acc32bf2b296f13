"""The data pipeline on Spark: website activity, from a Kafka topic to tables and topics, checked against itself."""
