"""The driver of confluent-kafka, that is of librdkafka in Python."""
