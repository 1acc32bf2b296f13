"""kill -9 of the broker under transactions: each is wholly there or not at all, and every record is copied once."""

from contextlib import closing

from compat_tests.ottla_process import OttlaProcess
from compat_tests.transactional_load import Writer
from compat_tests.transactional_run import TransactionRun

KILLS = 3


def test_transactions_survive() -> None:
    """A copier, two producers that commit and abort, a reader all the while; the broker dies three times."""
    with OttlaProcess() as ottla, closing(TransactionRun(ottla.bootstrap, "t")) as run:
        run.fill(900)
        run.watch()
        # Not librdkafka: it hangs in send_offsets_to_transaction after a restart, of Kafka as well.
        copier = run.keep_copying("kafka_python")
        writers = [Writer(run, "confluent", seed) for seed in range(2)]
        for _ in range(KILLS):
            run.wait_for_commits(10)
            ottla.kill()
            ottla.start()
        run.wait_until_copied()
        copier.stop()
        for writer in writers:
            writer.stop()
        run.finish(is_copied=True)
