"""The tables of the wire room against Kafka's own: fields, API keys, errors."""

from typing import Any

import pytest

from compat_tests.kafka.definitions import definitions, differences
from compat_tests.kafka.message_bridge import MessageBridge
from ottla.wire.api_keys import NEVER_FLEXIBLE, ApiKey, api_key_infos
from ottla.wire.errors import ErrorCode
from ottla.wire.fields import VersionRange
from ottla.wire.messages.produce import ProduceRequest
from tests.wire.catalog import every_message


@every_message()
def test_fields_are_kafkas(cls: Any) -> None:
    """Names, types, versions, nullability, tags, defaults and ignorability of all fields, in their order."""
    assert differences(cls, definitions()[cls.__name__]) == []


def test_differences_are_noticed() -> None:
    """The comparison itself sees a wrong version, type and default."""
    definition = definitions()["ProduceRequest"]
    changed = {
        **definition,
        "fields": [dict(field) for field in definition["fields"]],
        "validVersions": "3-14",
    }
    changed["fields"][1] |= {"type": "int32", "versions": "1+", "default": "-1"}
    assert len(differences(ProduceRequest, changed)) == 4


def test_api_keys_are_kafkas() -> None:
    """Versions, first flexible version and listeners of every key that Kafka 4.3 has."""
    requests = {d["apiKey"]: d for d in definitions().values() if d["type"] == "request"}
    infos = {info.api_key: info for info in api_key_infos()}
    assert set(infos) - set(requests) == {
        ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
        ApiKey.UNREGISTER_CONTROLLER,
    }
    for key, definition in requests.items():
        info = infos[ApiKey(key)]
        if definition["validVersions"] == "none":
            assert info.max_version == -1
            continue
        valid = VersionRange(definition["validVersions"])
        last = valid.last - bool(definition.get("latestVersionUnstable"))
        flexible = definition["flexibleVersions"]
        assert (info.min_version, info.max_version) == (valid.first, last), info.name
        assert info.first_flexible == (NEVER_FLEXIBLE if flexible == "none" else int(flexible[:-1])), (
            info.name
        )
        assert info.on_broker == ("broker" in definition["listeners"]), info.name
        assert info.on_controller == ("controller" in definition["listeners"]), info.name
        assert f"{info.name}Request" == definition["name"]


@every_message()
def test_message_and_key_agree(cls: Any) -> None:
    """A message and the table of keys name the same versions."""
    info = next(info for info in api_key_infos() if info.api_key == cls.API_KEY)
    assert info[1:4] == (cls.MIN_VERSION, cls.MAX_VERSION, cls.FLEXIBLE)


def test_errors_are_kafkas(kafka_messages: MessageBridge) -> None:
    """Codes, names and which errors a client retries."""
    ours = [(error.value, error.name, error.retriable) for error in ErrorCode]
    kafkas = [(row["code"], row["name"], row["retriable"]) for row in kafka_messages.errors()]
    assert ours == kafkas


@pytest.mark.parametrize("error", [error for error in ErrorCode if error is not ErrorCode.NONE])
def test_errors_say_something(error: ErrorCode) -> None:
    """Every error has a sentence."""
    assert error.message.endswith(".")
