"""Logs in the middle of a random life, compacted ones too, have nothing that verify would complain about."""

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import invariant

from ottla.log_store.verify.partition import PartitionCheck, VerifyOptions
from tests.log_store.compaction.test_model import Compaction


class VerifiedCompaction(Compaction):
    """The model of compaction, looked at from outside after every step."""

    @invariant()
    def nothing_is_wrong(self) -> None:
        if hasattr(self, "log"):
            check = PartitionCheck(self.log.directory, VerifyOptions(in_use=True))
            assert [str(finding) for finding in check.run()] == []
            assert check.end_offset == self.log.log_end_offset


TestVerifiedCompaction = VerifiedCompaction.TestCase
TestVerifiedCompaction.settings = settings(
    max_examples=8,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.reuse, Phase.generate],  # a step takes too long for shrinking
)
