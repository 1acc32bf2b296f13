"""The tables say what Kafka 4.3's own classes say: names, types, defaults, valid values, update modes, synonyms."""

import json
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compat_tests.kafka.jars import compile_java, java_executable, kafka_classpath
from ottla.config.broker import BROKER_CONFIGS
from ottla.config.client_metrics import CLIENT_METRICS_CONFIGS
from ottla.config.definition import NO_DEFAULT, ConfigDefinition, UpdateMode, to_text
from ottla.config.dynamic import DYNAMIC_CONFIGS
from ottla.config.group_configs import GROUP_CONFIGS
from ottla.config.topics import TOPIC_CONFIGS, TOPIC_SYNONYMS
from tests.config.other_defaults import OTHER_DEFAULTS

Rows = Mapping[str, list[dict[str, Any]]]

TABLES = {
    "broker": BROKER_CONFIGS,
    "dynamic": DYNAMIC_CONFIGS,
    "topic": TOPIC_CONFIGS,
    "group": GROUP_CONFIGS,
    "client metrics": CLIENT_METRICS_CONFIGS,
}


@pytest.fixture(scope="module")
def kafka_rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """What ConfigTables.java prints, by table."""
    classes = tmp_path_factory.mktemp("classes")
    compile_java(Path(__file__).with_name("ConfigTables.java"), classes, kafka_classpath())
    command = [
        java_executable(),
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{classes}:{kafka_classpath()}",
        "ConfigTables",
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = defaultdict(list)
    for line in printed.splitlines():
        row = json.loads(line)
        rows[row["table"]].append(row)
    return rows


def as_kafka_says(row: ConfigDefinition) -> dict[str, Any]:
    """A row of ours in the words of ConfigTables.java."""
    return {
        "type": row.type.name,
        "default": to_text(row.default_value),
        "required": row.default is NO_DEFAULT,
        "importance": row.importance.name,
        "internal": row.internal,
        "valid": None if row.validator is None else row.validator.describe(),
    }


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_kafkas(kafka_rows: Rows, table: str) -> None:
    """Every config of Kafka is there with the same facts, and no other."""
    expected = {}
    for row in kafka_rows[table]:
        facts = {key: value for key, value in row.items() if key not in ("table", "name")}
        facts["default"] = OTHER_DEFAULTS.get(row["name"], facts["default"])
        expected[row["name"]] = facts
    assert {name: as_kafka_says(row) for name, row in TABLES[table].items()} == expected


def test_update_modes(kafka_rows: Rows) -> None:
    """What may be changed while the broker runs, and for one broker or for all."""
    expected = {row["name"]: row["mode"] for row in kafka_rows["mode"]}
    assert {name: row.mode.value for name, row in DYNAMIC_CONFIGS.items()} == expected
    assert all(
        row.mode is UpdateMode.READ_ONLY for name, row in BROKER_CONFIGS.items() if name not in expected
    )


def test_topic_synonyms(kafka_rows: Rows) -> None:
    """Which broker configs a topic config falls back to, in which order and unit."""
    expected = defaultdict(list)
    for row in kafka_rows["synonym"]:
        expected[row["name"]].append((row["synonym"], int(row["one"])))
    assert {
        name: [(synonym.name, synonym.ms_per_unit) for synonym in synonyms]
        for name, synonyms in TOPIC_SYNONYMS.items()
    } == expected


def test_every_config_is_documented() -> None:
    """Each row has a sentence of its own."""
    for table in TABLES.values():
        for row in table.values():
            assert row.doc.endswith("."), row.name
