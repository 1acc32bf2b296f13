"""Members of consumer groups as processes of their own, one file for each client library.

`python -m compat_tests.group_members LIBRARY name=value ...` joins a group with librdkafka's names of settings, reads,
commits each time after it has told what it read, and leaves when its standard input ends. compat_tests/kafka/java has
the same for the Java clients. On standard output a member tells what happens to it, a line each, beginning with the
machine's monotonic clock in nanoseconds:

    NANOS owns 0,1,2        its assignment changed
    NANOS read 1 100 120    records of partition 1 from offset 100 up to, not including, 120
    NANOS committed 1 120   the broker acknowledged this commit
    NANOS failed REASON     it did not, and nothing else was told of
    NANOS left              it has left the group and ends
"""
