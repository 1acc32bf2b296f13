"""`python -m compat_tests.matrix.drivers.kcat_driver HOST:PORT`"""

import json
import re
import sys
from typing import Any

from compat_tests.matrix.drivers.kcat_driver.command import Command
from compat_tests.matrix.drivers.kcat_driver.members import Members
from compat_tests.matrix.drivers.kcat_driver.records import Records
from compat_tests.matrix.drivers.serving import Unsupported, serve


class Driver(Records, Members, Command):
    """All calls."""

    def version(self) -> dict[str, str]:
        found = re.search(r"Version (\S+) .*librdkafka (\S+) ", self.run("-V"))
        assert found is not None
        return {"library": "kcat", "version": f"{found[1]} (librdkafka {found[2]})"}

    def metadata(self, topics: list[str] | None) -> dict[str, Any]:
        """Of all topics, whichever are asked for: it lets the broker create one that it names."""
        found = json.loads(self.run("-L", "-J"))
        return {
            "cluster_id": None,
            "controller": found["controllerid"],
            "brokers": [
                {
                    "id": each["id"],
                    "host": each["name"].rpartition(":")[0],
                    "port": int(each["name"].rpartition(":")[2]),
                }
                for each in found["brokers"]
            ],
            "topics": {
                each["topic"]: {
                    "error": self.name_of(each["error"]) if "error" in each else None,
                    "partitions": [
                        {
                            "partition": part["partition"],
                            "leader": part["leader"],
                            "replicas": [replica["id"] for replica in part["replicas"]],
                            "isr": [replica["id"] for replica in part["isrs"]],
                        }
                        for part in each["partitions"]
                    ],
                }
                for each in found["topics"]
                if topics is None or each["topic"] in topics
            },
        }

    def txn_init(self, **_: Any) -> None:
        raise Unsupported("kcat sends a whole transaction as one command")

    def close(self) -> None:
        self.close_members()


serve(Driver(sys.argv[1]))
