"""Fixtures of the record batch tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.wire.records.java_bridge import JavaRecords


@pytest.fixture(scope="session")
def java_records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaRecords]:
    """Kafka's own record classes, in one Java process for all tests."""
    bridge = JavaRecords(tmp_path_factory.mktemp("record-bridge"))
    yield bridge
    bridge.close()
