"""The driver of aiokafka."""
