"""A consumer in a process of its own, which can be killed: `python -m compat_tests.group_member BOOTSTRAP TOPIC GROUP
ASSIGNOR`. It reads and commits until its input ends, and writes what it did, with the time, a line each.
"""

import json
import sys
import threading
import time

from compat_tests.group_readers import ConfluentReader, Ledger


class WritingLedger(Ledger):
    def read(self, partition: int, offset: int, value: bytes) -> None:
        self._write("read", {partition: offset}, value.decode())

    def commit(self, positions: dict[int, int]) -> None:
        self._write("commit", positions, "")

    def _write(self, kind: str, positions: dict[int, int], value: str) -> None:
        sys.stdout.write(json.dumps([time.monotonic_ns(), kind, positions, value]) + "\n")
        sys.stdout.flush()


def main() -> None:
    bootstrap, topic, group_id, assignor = sys.argv[1:]
    reader = ConfluentReader(bootstrap, topic, group_id, WritingLedger(), assignor=assignor).start()
    ended = threading.Thread(target=sys.stdin.read)
    ended.start()
    ended.join()
    reader.stop()


if __name__ == "__main__":
    main()
