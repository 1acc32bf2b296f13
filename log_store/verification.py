"""Whether the coordinator knows that a transaction writes to a partition (KIP-890).

The first batch of a transaction is appended only after its coordinator has been asked. A verification stands for that
question: it begins before the coordinator is asked, and it must still stand when the batch is appended. A marker that
comes in between ends it, so a late batch cannot begin a transaction that nobody would end. With transactions V2 a
verification that carries the epoch of the marker belongs to the next transaction and stays.

Of the batches that were refused while they were verified the lowest sequence is remembered: none behind it may be the
first, or the one with that sequence could never be appended.
"""

from __future__ import annotations

from ottla.log_store.producer_entry import ProducerEntry
from ottla.wire.errors import ErrorCode, KafkaError


class Verification:
    """A question to the coordinator that has not led to an append yet. Its identity is what counts."""

    __slots__ = ("epoch", "lowest_sequence", "started_ms", "supports_epoch_bump")

    def __init__(self, epoch: int, sequence: int, now_ms: int, *, supports_epoch_bump: bool) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.started_ms = now_ms
        self.supports_epoch_bump = supports_epoch_bump


NOT_REQUIRED = Verification(0, 0, 0, supports_epoch_bump=False)  # what is appended need not be verified


class Verifications(dict[int, Verification]):
    """The verifications of a partition by producer id. A dictionary, since every append asks whether it is empty."""

    __slots__ = ()

    def start(
        self,
        entry: ProducerEntry | None,
        producer_id: int,
        epoch: int,
        sequence: int,
        *,
        supports_epoch_bump: bool,
        now_ms: int,
    ) -> Verification | None:
        """The verification that a batch needs, or None if its transaction goes on; INVALID_PRODUCER_EPOCH."""
        if entry is not None:
            entry.check_epoch(epoch)
            if entry.has_ongoing_txn(epoch):
                return None
        verification = self.get(producer_id)
        if verification is None:
            verification = self[producer_id] = Verification(
                epoch, sequence, now_ms, supports_epoch_bump=supports_epoch_bump
            )
        elif epoch > verification.epoch:
            verification.epoch = epoch
            verification.lowest_sequence = sequence
        elif epoch == verification.epoch:
            verification.lowest_sequence = min(sequence, verification.lowest_sequence)
        return verification

    def check(
        self, entry: ProducerEntry | None, producer_id: int, epoch: int, verification: Verification | None
    ) -> None:
        """INVALID_TXN_STATE unless a transactional batch goes on with a transaction or was verified."""
        if entry is not None:
            if entry.has_ongoing_txn(epoch):
                return
            entry.check_epoch(epoch)
        if verification is NOT_REQUIRED:
            return
        if verification is None or self.get(producer_id) is not verification:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, "The records are not part of a transaction that goes on."
            )

    def check_sequence(self, entry: ProducerEntry | None, producer_id: int, first_sequence: int) -> None:
        """OUT_OF_ORDER_SEQUENCE_NUMBER for a batch before which others have to come."""
        verification = self.get(producer_id)
        if verification is None:
            return
        is_unknown = entry is None or not entry.batches
        if verification.supports_epoch_bump and is_unknown and first_sequence != 0:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Producer {producer_id}, of which nothing is known here, begins with sequence {first_sequence} "
                "instead of 0.",
            )
        if first_sequence > verification.lowest_sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Producer {producer_id} sent sequence {first_sequence} before "
                f"{verification.lowest_sequence}, which it tried to write first.",
            )

    def data_written(self, producer_id: int) -> None:
        """A transactional batch of the producer is in the log."""
        self.pop(producer_id, None)

    def marker_written(self, producer_id: int, epoch: int) -> None:
        verification = self.get(producer_id)
        if verification is not None and not (
            verification.supports_epoch_bump and verification.epoch == epoch
        ):
            del self[producer_id]

    def remove_older(self, expiration_ms: int, now_ms: int) -> None:
        """Forget those that have led to nothing for so long."""
        for producer_id, verification in list(self.items()):
            if now_ms - verification.started_ms >= expiration_ms:
                del self[producer_id]
