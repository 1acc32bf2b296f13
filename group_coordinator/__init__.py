"""The group coordinator: pure state machines of groups and of their committed offsets.

A `shard` has the groups of one partition of `__consumer_offsets`. Events go in, effects come out (`effects`), and
what the log holds changes only by applying records (`records`). Each kind of group has its room: `classic`,
`consumer`.
"""
