"""What the log knows of one producer, and whether its next batch fits (KIP-98, KIP-360, KIP-890).

A producer numbers its records per partition. A batch is accepted if it continues the sequence, if it begins
a newer epoch at 0, or if nothing is known of the producer (its state may have expired: any number begins
it). A batch that repeats one of the last five, number for number, was acknowledged before: the answer is its
first offset once more. Everything else is OUT_OF_ORDER_SEQUENCE_NUMBER, an older epoch
INVALID_PRODUCER_EPOCH. Sequences go from 2^31-1 back to 0.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.wire.errors import ErrorCode, KafkaError

BATCHES_TO_RETAIN: Final = 5
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
LAST_SEQUENCE: Final = 0x7FFFFFFF


class BatchMetadata(NamedTuple):
    """A batch of a producer that was appended."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerEntry:
    """The state of one producer id in one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "is_partial",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = NO_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.current_txn_first_offset: int | None = None
        self.batches: list[BatchMetadata] = []
        self.is_partial = (
            False  # it comes from a snapshot, so older batches of its window are in the log only
        )

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def has_ongoing_txn(self, epoch: int) -> bool:
        """Whether a transaction of this epoch goes on; with another epoch it may have ended elsewhere."""
        return self.current_txn_first_offset is not None and self.producer_epoch == epoch

    def copy(self) -> ProducerEntry:
        other = ProducerEntry(self.producer_id)
        other.producer_epoch = self.producer_epoch
        other.coordinator_epoch = self.coordinator_epoch
        other.last_timestamp = self.last_timestamp
        other.current_txn_first_offset = self.current_txn_first_offset
        other.batches = self.batches.copy()
        other.is_partial = self.is_partial
        return other

    def duplicate_of(self, epoch: int, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        """The retained batch with exactly these sequences, if any."""
        if epoch == self.producer_epoch:
            for batch in self.batches:
                if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                    return batch
        return None

    def check_epoch(self, epoch: int) -> None:
        if epoch < self.producer_epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch {epoch} of producer {self.producer_id} is older than {self.producer_epoch}, the "
                "last seen.",
            )

    def check_sequence(self, epoch: int, first_sequence: int) -> None:
        """OUT_OF_ORDER_SEQUENCE_NUMBER unless a batch of this epoch may begin with `first_sequence`."""
        if epoch != self.producer_epoch:
            if first_sequence != 0 and self.producer_epoch != NO_EPOCH:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Producer {self.producer_id} begins its epoch {epoch} with sequence {first_sequence} "
                    f"instead of 0 (known epoch: {self.producer_epoch}).",
                )
            return
        last = self.last_sequence
        if first_sequence != last + 1 and not (first_sequence == 0 and last == LAST_SEQUENCE):
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Producer {self.producer_id} sent sequence {first_sequence} after {last}.",
            )

    def add_batch(self, epoch: int, batch: BatchMetadata) -> None:
        if epoch != self.producer_epoch:
            self.producer_epoch = epoch
            self.batches = [batch]
            self.is_partial = False
            self.last_timestamp = batch.timestamp
        else:
            self.add_next(*batch)

    def add_next(
        self, first_sequence: int, last_sequence: int, first_offset: int, last_offset: int, timestamp: int
    ) -> None:
        """The same for the next batch of this epoch."""
        batches = self.batches
        batches.append(BatchMetadata(first_sequence, last_sequence, first_offset, last_offset, timestamp))
        if len(batches) > BATCHES_TO_RETAIN:
            del batches[0]
            self.is_partial = False
        self.last_timestamp = timestamp

    def begin_or_continue_txn(self, first_offset: int, *, is_transactional: bool) -> bool:
        """Note a data batch; True if it is the first of a transaction."""
        if self.current_txn_first_offset is None:
            if is_transactional:
                self.current_txn_first_offset = first_offset
                return True
        elif not is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {self.producer_id} wrote outside of its transaction, which is still open.",
            )
        return False

    def end_txn(self, epoch: int, coordinator_epoch: int, timestamp: int) -> None:
        """Note a commit or abort marker."""
        if epoch != self.producer_epoch:
            self.producer_epoch = epoch
            self.batches = []
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = None
        self.last_timestamp = timestamp
