"""Spark's Kafka source and sink, unchanged, on both brokers."""
