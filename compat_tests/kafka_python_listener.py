"""What keeps kafka-python from going back to offsets that are not the group's any more.

When a poll ends while kafka-python 3.0 waits for the group's offsets, it keeps the question, and takes its answer for
that of the next question about the same partitions, however much later. So a member that gets partitions back after
others have read on begins where they were when it first asked, on any broker: what they committed is read again.
"""

from kafka import ConsumerRebalanceListener, KafkaConsumer


class FreshOffsets(ConsumerRebalanceListener):  # type: ignore[misc]
    """Forgets old questions with each new assignment."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer

    def on_partitions_revoked(self, revoked: object) -> None:
        pass

    def on_partitions_assigned(self, assigned: object) -> None:
        self._consumer._coordinator._offset_fetch_futures.clear()
