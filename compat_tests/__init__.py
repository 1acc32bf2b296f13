"""The same cases, with stock clients, against Ottla and against a real Apache Kafka."""
