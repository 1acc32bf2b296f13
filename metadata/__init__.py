"""Cluster metadata: KRaft records, the image folded from them, and the embedded controller."""
