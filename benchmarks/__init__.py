"""Ottla and Apache Kafka side by side: the same librdkafka client, the same machine, the same run."""
