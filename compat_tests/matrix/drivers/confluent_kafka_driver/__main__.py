"""`python -m compat_tests.matrix.drivers.confluent_kafka_driver HOST:PORT`"""

import sys

import confluent_kafka

from compat_tests.matrix.drivers.confluent_kafka_driver.admin import Admin
from compat_tests.matrix.drivers.confluent_kafka_driver.transactions import Transactions
from compat_tests.matrix.drivers.serving import serve


class Driver(Admin, Transactions):
    """All calls."""

    def version(self) -> dict[str, str]:
        return {
            "library": "confluent-kafka",
            "version": f"{confluent_kafka.__version__} (librdkafka {confluent_kafka.libversion()[0]})",
        }

    def close(self) -> None:
        self.close_members()
        self.close_producers()


serve(Driver(sys.argv[1]))
