"""Loading a broker's properties: listeners, names, rules between configs, and what is refused."""

import pytest

from ottla.config.broker_config import BrokerConfig
from ottla.config.definition import ConfigError
from ottla.config.listeners import Endpoint
from ottla.config.properties import parse_properties_file


def refusal(**properties: str) -> str:
    """What is said to properties that are refused; `__` in a name stands for a dot."""
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load({name.replace("__", "."): text for name, text in properties.items()})
    return str(caught.value)


def test_defaults() -> None:
    """Nothing needs to be given."""
    config = BrokerConfig.load({})
    assert config.listeners() == [Endpoint("PLAINTEXT", "PLAINTEXT", "", 9092)]
    assert config.advertised_listeners() == config.listeners()
    assert config.log_dirs() == ("ottla-data",)
    assert config.metadata_log_dir() == "ottla-data"
    assert config.node_id() is None
    assert config.rack() is None
    assert config.get_int("num.partitions") == 1
    assert config.get_bool("auto.create.topics.enable") is True
    assert config.get_float("log.cleaner.io.buffer.load.factor") == 0.9
    assert config.get_str("compression.type") == "producer"
    assert config.get_list("log.cleanup.policy") == ("delete",)
    assert config.get("log.retention.ms") is None
    assert config.raw == {}


def test_single_node_kafka() -> None:
    """The server.properties of a single-node KRaft Kafka loads; the controller's listener is not opened."""
    config = BrokerConfig.load(
        parse_properties_file(
            """
            # roles
            process.roles=broker,controller
            node.id=1
            controller.quorum.bootstrap.servers=localhost:9093
            controller.quorum.voters=1@localhost:9093
            listeners=PLAINTEXT://:9092,CONTROLLER://:9093
            inter.broker.listener.name=PLAINTEXT
            advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
            controller.listener.names=CONTROLLER
            listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
            num.network.threads=3
            log.dirs=/a, /b
            offsets.topic.replication.factor=1
            log.retention.hours=168
            """
        )
    )
    assert config.node_id() == 1
    assert config.get_int("broker.id") == 1
    assert config.listeners() == [Endpoint("PLAINTEXT", "PLAINTEXT", "", 9092)]
    assert config.advertised_listeners() == [Endpoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092)]
    assert config.log_dirs() == ("/a", "/b")


def test_listener_forms() -> None:
    """Names in any case, IPv6 in brackets, several listeners, port 0 more than once."""
    config = BrokerConfig.load(
        {
            "listeners": "plaintext://[::1]:9092,inside://10.0.0.1:0,OUTSIDE://h-1.example.com:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:plaintext,OUTSIDE:PLAINTEXT",
        }
    )
    assert [str(each) for each in config.listeners()] == [
        "PLAINTEXT://[::1]:9092",
        "INSIDE://10.0.0.1:0",
        "OUTSIDE://h-1.example.com:0",
    ]
    assert config.listeners()[0].host == "::1"


def test_one_port_for_both_ip_versions() -> None:
    """Two listeners may share a port if one is IPv4 and the other IPv6 (KIP-797)."""
    protocols = "A:PLAINTEXT,B:PLAINTEXT,C:PLAINTEXT"
    settings = {"listener.security.protocol.map": protocols, "inter.broker.listener.name": "A"}
    config = BrokerConfig.load({**settings, "listeners": "A://127.0.0.1:1,B://[::1]:1"})
    assert len(config.listeners()) == 2
    for listeners, why in [
        ("A://127.0.0.1:1,B://127.0.0.2:1", "then one needs to be IPv4 and the other IPv6"),
        ("A://one:1,B://two:1", "Each listener must have a different port"),
        ("A://127.0.0.1:1,B://[::1]:1,C://127.0.0.2:1", "unless exactly one listener has an IPv4"),
        ("A://127.0.0.1:1,B://:1", "then one needs to be IPv4 and the other IPv6"),
    ]:
        with pytest.raises(ConfigError, match=why):
            BrokerConfig.load({**settings, "listeners": listeners})


def test_refused_listeners() -> None:
    """What cannot be parsed, mapped, served or reached."""
    assert "Unable to parse nonsense to a broker endpoint" in refusal(listeners="nonsense")
    assert "No security protocol defined for listener FOO" in refusal(listeners="FOO://:1")
    assert "Each listener must have a different name" in refusal(listeners="PLAINTEXT://:1,PLAINTEXT://:2")
    assert "70000 is no port" in refusal(listeners="PLAINTEXT://:70000")
    assert refusal(listeners="") == (
        "Configuration 'listeners' must not be empty. Valid values include: any non-empty value"
    )
    assert refusal(listeners="SASL_SSL://:1", security__inter__broker__protocol="SASL_SSL") == (
        "Listener SASL_SSL uses SASL_SSL, but Ottla serves PLAINTEXT only."
    )
    assert "0.0.0.0" in refusal(listeners="PLAINTEXT://0.0.0.0:1")
    assert "0.0.0.0" in refusal(advertised__listeners="PLAINTEXT://0.0.0.0:1")
    assert "Found SSL" in refusal(advertised__listeners="SSL://host:1")
    assert "Invalid security protocol `X`" in refusal(listener__security__protocol__map="A:X")
    assert "inter.broker.listener.name must be" in refusal(
        listeners="A://:1", listener__security__protocol__map="A:PLAINTEXT"
    )
    assert "not found in listener.security.protocol.map" in refusal(inter__broker__listener__name="X")
    assert "Only one of" in refusal(
        inter__broker__listener__name="PLAINTEXT", security__inter__broker__protocol="PLAINTEXT"
    )
    assert "at least one broker advertised listener" in refusal(controller__listener__names="PLAINTEXT")


def test_wildcard_may_be_bound_if_another_address_is_advertised() -> None:
    """0.0.0.0 is fine to listen on."""
    config = BrokerConfig.load(
        {"listeners": "PLAINTEXT://0.0.0.0:1", "advertised.listeners": "PLAINTEXT://host:2"}
    )
    assert config.listeners()[0].host == "0.0.0.0"
    assert config.advertised_listeners() == [Endpoint("PLAINTEXT", "PLAINTEXT", "host", 2)]


def test_unknown_names() -> None:
    """An unknown name is refused with the nearest known one, if one is near."""
    assert refusal(num__partition="1") == "Unknown config name num.partition; did you mean num.partitions?"
    assert refusal(zzz="1") == "Unknown config name zzz."
    assert refusal(listener__name__x__zzz="1") == "Unknown config name listener.name.x.zzz."


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.internal.ssl.keystore.location",
        "listener.name.internal.scram-sha-256.sasl.jaas.config",
        "rsm.config.bucket",
        "config.providers.file.class",
        "super.users",
    ],
)
def test_names_of_listeners_and_plugins(name: str) -> None:
    """Properties that Kafka hands on to a listener or a plugin load."""
    assert BrokerConfig.load({name: "x"}).raw == {name: "x"}


def test_listener_prefixed_values_are_checked() -> None:
    """A config with a listener prefix has the type of its base."""
    assert "Not a number" in refusal(listener__name__x__max__connections="many")


def test_values() -> None:
    """A value that breaks its rule is named."""
    assert refusal(num__partitions="0") == (
        "Invalid value 0 for configuration num.partitions: Value must be at least 1"
    )
    assert refusal(log__roll__ms="0") == "log.roll.ms must be greater than or equal to 1"
    assert "log.retention.ms must be unlimited" in refusal(log__retention__ms="0")
    assert "You must set `node.id`" in refusal(node__id="1", broker__id="2")
    assert "queued.max.request.bytes" in refusal(queued__max__request__bytes="5")
    assert "max.connections.per.ip can be set to zero only if" in refusal(max__connections__per__ip="0")
    assert "max.connections.per.ip.overrides" in refusal(max__connections__per__ip__overrides="a:b")
    assert "min.compaction.lag.ms (9) > max.compaction.lag.ms (1)" in refusal(
        log__cleaner__min__compaction__lag__ms="9", log__cleaner__max__compaction__lag__ms="1"
    )


def test_what_ottla_cannot_honour() -> None:
    """Ignoring these would harm, so they are refused."""
    assert "authorizer.class.name" in refusal(authorizer__class__name="org.example.A")
    assert "remote storage" in refusal(remote__log__storage__system__enable="true")
    assert "config.providers" in refusal(config__providers="file")
    assert "no controller on its own" in refusal(process__roles="controller")
    assert "does not join" in refusal(process__roles="broker")
    assert "must name this node only" in refusal(controller__quorum__voters="1@a:1,2@b:1")
    assert "must name this node only" in refusal(controller__quorum__voters="1@a:1", node__id="2")
    assert "in the form" in refusal(controller__quorum__voters="1a:1")


def test_node_id_found_later() -> None:
    """A node.id from the data directory counts as given."""
    config = BrokerConfig.load({}).with_properties({"node.id": "7"})
    assert config.node_id() == 7
    assert config.get_int("broker.id") == 7


def test_wrong_getter() -> None:
    """Asking for the wrong type is a mistake of the programmer."""
    with pytest.raises(TypeError, match=r"log\.retention\.ms"):
        BrokerConfig.load({}).get_int("log.retention.ms")
    with pytest.raises(KeyError):
        BrokerConfig.load({}).get("no.such.config")
