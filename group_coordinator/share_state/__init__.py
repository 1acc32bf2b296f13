"""What `__share_group_state` holds: the state of share partitions, in Apache Kafka's own record formats (KIP-932).

A snapshot is the whole state of a share partition, an update what changed since; a snapshot without a value
removes it.
"""
