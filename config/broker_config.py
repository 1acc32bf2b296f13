"""The configuration of this broker: what its properties say, and Kafka's defaults for the rest.

`BrokerConfig.load` refuses an unknown name, a value that breaks a rule, and settings that do not go together,
each with one sentence that names the config. Properties with a prefix that Kafka hands on to a plugin or a
listener (`listener.name.<name>.`, `config.providers.`, `rsm.config.`, `rlmm.config.`) are accepted by their
prefix. Dynamic configs are laid over a loaded one with `with_dynamic`; `raw` always holds the static ones.
"""

import logging
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Final

from ottla.config import dynamic
from ottla.config.broker import BROKER_CONFIGS
from ottla.config.broker_rules import check_broker_config
from ottla.config.definition import ConfigError, Value
from ottla.config.listeners import Endpoint, parse_endpoints, parse_protocol_map

log = logging.getLogger("ottla.config")

_PLUGIN_PREFIXES: Final = ("config.providers.", "rsm.config.", "rlmm.config.")
_PLUGIN_NAMES: Final = frozenset(
    {"super.users", "allow.everyone.if.no.acl.found", "metrics.jmx.include", "metrics.jmx.exclude"}
)
_LISTENER_PREFIX: Final = r"listener\.name\.[^.]+\.(.+)"
_DEFAULTS: Final[Mapping[str, Value]] = {name: row.default_value for name, row in BROKER_CONFIGS.items()}
_SECURE_NAMES: Final = frozenset({"SSL", "SASL_PLAINTEXT", "SASL_SSL"})


class BrokerConfig:
    """Every broker config by name; see `load`."""

    def __init__(self, raw: Mapping[str, str], values: Mapping[str, Value], explicit: frozenset[str]) -> None:
        self.raw: Final = raw
        self._values: Final = values
        self._explicit: Final = explicit

    @classmethod
    def load(cls, properties: Mapping[str, str]) -> "BrokerConfig":
        """Check and type the properties; raises ConfigError with one sentence."""
        config = cls._of(properties, properties)
        check_broker_config(config)
        return config

    @classmethod
    def _of(cls, raw: Mapping[str, str], properties: Mapping[str, str]) -> "BrokerConfig":
        values = dict(_DEFAULTS)
        for name, text in properties.items():
            if name in BROKER_CONFIGS:
                values[name] = BROKER_CONFIGS[name].parse(text)
            else:
                _check_other_name(name, text)
        if values["node.id"] is None and "broker.id" in properties:
            values["node.id"] = values["broker.id"]
        elif "node.id" in properties and "broker.id" not in properties:
            values["broker.id"] = values["node.id"]
        return cls(dict(raw), values, frozenset(properties))

    def with_properties(self, properties: Mapping[str, str]) -> "BrokerConfig":
        """The same with more static properties, such as a node.id found in the data directory."""
        return BrokerConfig.load({**self.raw, **properties})

    def with_dynamic(
        self, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]
    ) -> "BrokerConfig":
        """This configuration under the cluster-wide and the per-broker dynamic configs.

        What is stored but broken or not allowed at its level is left out with a warning, as Kafka does.
        """
        properties = dict(self.raw)
        for level, per_broker in ((dynamic_default, False), (dynamic_broker, True)):
            usable, problems = dynamic.usable_configs(level, per_broker=per_broker)
            for problem in problems:
                log.warning("ignoring dynamic broker config: %s", problem)
            dynamic.override(properties, usable)
        properties = {name: text for name, text in properties.items() if name in BROKER_CONFIGS}
        return self._of(self.raw, properties)

    def get(self, name: str) -> Value:
        """The value of any broker config; KeyError if there is no such config."""
        return self._values[name]

    def is_set(self, name: str) -> bool:
        """Whether the value was given rather than Kafka's default."""
        return name in self._explicit

    def get_int(self, name: str) -> int:
        """An INT, SHORT or LONG that is not null."""
        value = self._values[name]
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} is no integer: {value!r}")
        return value

    def get_float(self, name: str) -> float:
        """A DOUBLE that is not null."""
        value = self._values[name]
        if not isinstance(value, float):
            raise TypeError(f"{name} is no double: {value!r}")
        return value

    def get_bool(self, name: str) -> bool:
        """A BOOLEAN."""
        value = self._values[name]
        if not isinstance(value, bool):
            raise TypeError(f"{name} is no boolean: {value!r}")
        return value

    def get_str(self, name: str) -> str:
        """A STRING, CLASS or PASSWORD that is not null."""
        value = self._values[name]
        if not isinstance(value, str):
            raise TypeError(f"{name} is no string: {value!r}")
        return value

    def get_list(self, name: str) -> tuple[str, ...]:
        """A LIST; empty when it is null."""
        value = self._values[name]
        if value is None:
            return ()
        if not isinstance(value, tuple):
            raise TypeError(f"{name} is no list: {value!r}")
        return value

    get_long = get_int
    get_short = get_int

    def node_id(self) -> int | None:
        """node.id, or its old name broker.id; None when neither is given."""
        value = self._values["node.id"]
        return value if isinstance(value, int) and value >= 0 else None

    def rack(self) -> str | None:
        """broker.rack, if there is one."""
        value = self._values["broker.rack"]
        return value if isinstance(value, str) else None

    def log_dirs(self) -> tuple[str, ...]:
        """The data directories, in order."""
        return self.get_list("log.dirs") or self.get_list("log.dir")

    def metadata_log_dir(self) -> str:
        """The directory of the cluster metadata log."""
        value = self._values["metadata.log.dir"]
        return value if isinstance(value, str) else self.log_dirs()[0]

    def listeners(self) -> list[Endpoint]:
        """What to bind: the listeners but those of the controller."""
        return [each for each in self.all_listeners if not self._is_controller(each)]

    def advertised_listeners(self) -> list[Endpoint]:
        """What clients are told: advertised.listeners, or listeners, without those of the controller."""
        entries = self.get_list("advertised.listeners")
        if not entries:
            return self.listeners()
        endpoints = parse_endpoints(entries, self.protocol_map, distinct_ports=False)
        return [each for each in endpoints if not self._is_controller(each)]

    def inter_broker_listener_name(self) -> str:
        """The listener that brokers would use among themselves."""
        name = self._values["inter.broker.listener.name"]
        if name is None:
            return self.get_str("security.inter.broker.protocol")
        if self.is_set("security.inter.broker.protocol"):
            raise ConfigError(
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
            )
        name = str(name).upper()
        if name not in self.protocol_map:
            raise ConfigError(
                f"Listener with name {name} defined in inter.broker.listener.name not found in "
                "listener.security.protocol.map."
            )
        return name

    @cached_property
    def all_listeners(self) -> list[Endpoint]:
        """The listeners config as it stands."""
        return parse_endpoints(self.get_list("listeners"), self.protocol_map)

    @cached_property
    def protocol_map(self) -> dict[str, str]:
        """The security protocol of each listener name; controller listeners are PLAINTEXT unless mapped."""
        protocols = parse_protocol_map(self.get_str("listener.security.protocol.map"))
        if not self.is_set("listener.security.protocol.map"):
            controllers = self.get_list("controller.listener.names")
            names = {entry.partition(":")[0].upper() for entry in self.get_list("listeners")}
            if not _SECURE_NAMES & (names | set(controllers)):
                protocols |= {name.upper(): "PLAINTEXT" for name in controllers}
        return protocols

    def _is_controller(self, endpoint: Endpoint) -> bool:
        return endpoint.name in self.get_list("controller.listener.names")


def _check_other_name(name: str, text: str) -> None:
    """Accept a name outside the table by its prefix, or refuse it with the nearest one that exists."""
    if name.startswith(_PLUGIN_PREFIXES) or name in _PLUGIN_NAMES:
        return
    listener = re.fullmatch(_LISTENER_PREFIX, name)
    if listener is not None:
        base = listener.group(1)
        if base in BROKER_CONFIGS:
            BROKER_CONFIGS[base].parse(text)
            return
        if base.endswith(dynamic.LISTENER_MECHANISM_CONFIGS):
            return
    import difflib  # needed on the way out only, and slow to import

    near = difflib.get_close_matches(name, BROKER_CONFIGS, n=1, cutoff=0.75)
    hint = f"; did you mean {near[0]}?" if near else "."
    raise ConfigError(f"Unknown config name {name}{hint}")
