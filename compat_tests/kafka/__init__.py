"""A real Apache Kafka for tests: where its jars and a Java come from, and how one is run."""
