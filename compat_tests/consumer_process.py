"""`python -m compat_tests.consumer_process BOOTSTRAP GROUP TOPIC`: a consumer in a process that can be killed.

It speaks the consumer protocol, commits what it has read, and prints a line for each: `read PARTITION OFFSET VALUE`
when a record is there, `committed PARTITION OFFSET` when the broker has taken its offset.
"""

import sys

from confluent_kafka import Consumer, KafkaException


def main(bootstrap: str, group: str, topic: str) -> None:
    """Read until killed."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    while True:
        record = consumer.poll(0.1)
        if record is None or record.error() is not None:
            continue
        _say(f"read {record.partition()} {record.offset()} {record.value().decode()}")
        try:
            consumer.commit(record, asynchronous=False)
        except KafkaException:
            continue  # it lost the partition; whoever has it now reads the record again
        _say(f"committed {record.partition()} {record.offset() + 1}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
