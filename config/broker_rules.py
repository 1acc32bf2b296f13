"""Rules between broker configs, and the settings that Ottla cannot honour.

The first are Kafka's own, in its words. The second are refused rather than ignored where ignoring would harm:
an authorizer or a policy that is not asked, TLS that is not spoken, a quorum that is not joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.config.definition import ConfigError, to_text
from ottla.config.quorum import parse_voters

if TYPE_CHECKING:
    from ottla.config.broker_config import BrokerConfig

_NOT_LOADED: Final = (
    "authorizer.class.name",
    "create.topic.policy.class.name",
    "alter.config.policy.class.name",
    "client.quota.callback.class",
)


def check_broker_config(config: BrokerConfig) -> None:
    """Raise ConfigError for the first rule that is broken."""
    _check_ids(config)
    _check_times(config)
    _check_roles(config)
    _check_listeners(config)
    _check_connections(config)
    _check_unsupported(config)


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ConfigError(otherwise)


def _check_ids(config: BrokerConfig) -> None:
    if config.is_set("node.id") and config.is_set("broker.id"):
        _require(
            config.get("node.id") == config.get("broker.id"),
            "You must set `node.id` to the same value as `broker.id`.",
        )
    if config.is_set("broker.id"):
        _require(config.get_int("broker.id") >= 0, "broker.id must be at least 0.")


def _check_times(config: BrokerConfig) -> None:
    roll_ms, jitter_ms, retention_ms = (
        config.get(name) for name in ("log.roll.ms", "log.roll.jitter.ms", "log.retention.ms")
    )
    _require(_at_least(roll_ms, 1), "log.roll.ms must be greater than or equal to 1")
    _require(_at_least(jitter_ms, 0), "log.roll.jitter.ms must be greater than or equal to 0")
    if retention_ms is None:
        minutes = config.get("log.retention.minutes")
        retention_ms = config.get_int("log.retention.hours") if minutes is None else minutes
    _require(retention_ms != 0, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    cleaner_threads = config.get_int("log.cleaner.threads")
    _require(
        cleaner_threads == 0 or config.get_int("log.cleaner.dedupe.buffer.size") // cleaner_threads > 1 << 20,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )
    wait_ms = config.get_int("replica.fetch.wait.max.ms")
    _require(
        wait_ms <= config.get_int("replica.socket.timeout.ms"),
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent "
        "unnecessary socket timeouts",
    )
    _require(
        wait_ms <= config.get_int("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent "
        "frequent changes in ISR",
    )
    low, high = (
        config.get_int("log.cleaner.min.compaction.lag.ms"),
        config.get_int("log.cleaner.max.compaction.lag.ms"),
    )
    _require(
        low <= high,
        f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})",
    )


def _at_least(value: object, minimum: int) -> bool:
    return value is None or (isinstance(value, int) and value >= minimum)


def _check_roles(config: BrokerConfig) -> None:
    roles = config.get_list("process.roles")
    if roles:
        _require("broker" in roles, "process.roles must contain broker: Ottla is no controller on its own.")
        _require(
            "controller" in roles,
            "process.roles=broker asks for a controller quorum elsewhere, which Ottla does not join; set "
            "process.roles=broker,controller to use the embedded controller.",
        )
    voters = {voter.node_id for voter in parse_voters(config.get_list("controller.quorum.voters"))}
    node_id = config.node_id()
    alone = not voters or (len(voters) == 1 and (node_id is None or voters == {node_id}))
    _require(
        alone,
        "controller.quorum.voters must name this node only, since Ottla's controller is embedded and stands "
        "alone.",
    )
    names = {endpoint.name for endpoint in config.all_listeners}
    if roles:
        _require(
            names >= set(config.get_list("controller.listener.names")),
            "controller.listener.names must only contain values appearing in the 'listeners' configuration "
            "when running the KRaft controller role",
        )
    protocols = config.get_list("group.coordinator.rebalance.protocols")
    _require("classic" in protocols, "Disabling the 'classic' protocol is not supported.")


def _check_listeners(config: BrokerConfig) -> None:
    names = {endpoint.name for endpoint in config.all_listeners}
    advertised = config.advertised_listeners()
    advertised_names = [endpoint.name for endpoint in advertised]
    _require(
        bool(advertised),
        "There must be at least one broker advertised listener. Perhaps all listeners appear in "
        "controller.listener.names?",
    )
    _require(
        set(advertised_names) <= names,
        "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. "
        f"Found {','.join(advertised_names)}. The valid options based on the current configuration are "
        f"{','.join(sorted(names))}",
    )
    for endpoint in (*config.listeners(), *advertised):
        _require(
            endpoint.security_protocol == "PLAINTEXT",
            f"Listener {endpoint.name} uses {endpoint.security_protocol}, but Ottla serves PLAINTEXT only.",
        )
    _require(
        config.inter_broker_listener_name() in advertised_names,
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid "
        f"options based on currently configured listeners are {','.join(advertised_names)}",
    )
    _require(
        not any(endpoint.host == "0.0.0.0" for endpoint in advertised),
        "advertised.listeners, which is listeners unless set, cannot use the nonroutable meta-address 0.0.0.0. "
        "Set it to the address at which clients reach this broker, such as PLAINTEXT://kafka.example.org:9092.",
    )
    early = {name.strip().upper() for name in config.get_list("early.start.listeners")}
    unknown = sorted(early - names - set(config.get_list("controller.listener.names")) - {""})
    _require(
        not unknown,
        f"early.start.listeners contains listener {', '.join(unknown)}, but this is not contained in "
        "listeners or controller.listener.names",
    )


def _check_connections(config: BrokerConfig) -> None:
    queued_bytes = config.get_int("queued.max.request.bytes")
    _require(
        queued_bytes <= 0 or queued_bytes >= config.get_int("socket.request.max.bytes"),
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    overrides = config.get_str("max.connections.per.ip.overrides")
    for entry in filter(None, (part.strip() for part in overrides.split(","))):
        host, _, count = entry.rpartition(":")
        _require(
            bool(host) and count.strip().isdecimal(),
            f"Error parsing configuration property 'max.connections.per.ip.overrides': {entry} is no pair",
        )
    _require(
        config.get_int("max.connections.per.ip") > 0 or bool(overrides),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    )
    idle_ms = config.get_int("connections.max.idle.ms")
    delay_ms = config.get_int("connection.failed.authentication.delay.ms")
    _require(
        idle_ms < 0 or delay_ms < idle_ms,
        f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
        f"connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing out",
    )


def _check_unsupported(config: BrokerConfig) -> None:
    for name in _NOT_LOADED:
        _require(
            not config.get(name),
            f"{name} is set to {to_text(config.get(name))}, but Ottla loads no Java classes.",
        )
    _require(
        not config.get_bool("remote.log.storage.system.enable"),
        "remote.log.storage.system.enable is true, but Ottla has no remote storage.",
    )
    _require(
        not config.get_list("config.providers"),
        "config.providers is set, but Ottla has no config providers; write the values themselves.",
    )
    cordoned, log_dirs = config.get_list("cordoned.log.dirs"), config.log_dirs()
    _require(
        "*" not in cordoned or len(cordoned) == 1,
        "When cordoned.log.dirs is set to *, it must not contain other values",
    )
    missing = [each for each in cordoned if each != "*" and each not in log_dirs]
    _require(
        not missing,
        "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
        f"{', '.join(missing)}",
    )
