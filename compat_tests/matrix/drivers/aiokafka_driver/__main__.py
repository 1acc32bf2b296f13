"""`python -m compat_tests.matrix.drivers.aiokafka_driver HOST:PORT`"""

import asyncio
import sys

import aiokafka

from compat_tests.matrix.drivers.aiokafka_driver.admin import Admin
from compat_tests.matrix.drivers.aiokafka_driver.groups import Groups
from compat_tests.matrix.drivers.aiokafka_driver.records import Records
from compat_tests.matrix.drivers.aiokafka_driver.transactions import Transactions
from compat_tests.matrix.drivers.serving import serve_async


class Driver(Admin, Records, Groups, Transactions):
    """All calls."""

    def version(self) -> dict[str, str]:
        return {"library": "aiokafka", "version": aiokafka.__version__}

    async def close(self) -> None:
        await self.close_members()
        await self.close_producers()
        await self.close_admin()


asyncio.run(serve_async(Driver(sys.argv[1])))
