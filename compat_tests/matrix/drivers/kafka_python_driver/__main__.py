"""`python -m compat_tests.matrix.drivers.kafka_python_driver HOST:PORT`"""

import sys

import kafka

from compat_tests.matrix.drivers.kafka_python_driver.admin import Admin
from compat_tests.matrix.drivers.kafka_python_driver.groups import GroupAdmin
from compat_tests.matrix.drivers.kafka_python_driver.records import Records
from compat_tests.matrix.drivers.kafka_python_driver.transactions import Transactions
from compat_tests.matrix.drivers.serving import serve


class Driver(Admin, GroupAdmin, Records, Transactions):
    """All calls."""

    def version(self) -> dict[str, str]:
        return {"library": "kafka-python", "version": kafka.__version__}

    def close(self) -> None:
        self.close_members()
        self.close_producers()
        self.close_admin()


serve(Driver(sys.argv[1]))
