"""Kafka's wire protocol as pure bytes: primitives, schemas, headers, errors, messages and record batches."""
