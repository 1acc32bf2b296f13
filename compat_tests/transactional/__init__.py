"""Transactional clients as processes of their own, one file for each client library, so that they can be killed.

`python -m compat_tests.transactional LIBRARY name=value ...` is told what to do on its standard input, a line for each
call of the library, and answers each on its standard output with `ok WORD ...` or `error NAME MESSAGE`.
compat_tests/kafka/java has the same for the Java clients. Settings have librdkafka's names.

    init                                  take over the transactional id
    begin
    send TOPIC PARTITION VALUE ...        answers with the offset of each
    offsets GROUP TOPIC PARTITION OFFSET  commit an offset with the transaction
    commit
    abort
    read TOPIC PARTITION ISOLATION        answers with OFFSET:VALUE of everything that this isolation level shows

One call does not return: to copy, batch by batch, everything that comes into a topic to another one, each batch in
a transaction with the offsets of what it has read.

    copy SOURCE TARGET PARTITIONS GROUP BATCH WAY

WAY is `assign` for all partitions of the source, going on from the offsets of the group, or `subscribe` as a member of
it. The copier tells of each transaction before and after its end, and ends with its standard input, or with the first
error: who started it starts another.

    trying OFFSETS RECORDS                PARTITION:NEXT_OFFSET,... of the source and PARTITION:VALUE,... of the target
    committed
    failed NAME MESSAGE
    left                                  it was told to end, and ends
"""
