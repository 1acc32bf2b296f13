"""The matrix: every stock client, the same cases, Ottla and a real Apache Kafka side by side (README.md)."""
