"""The rules of controller.quorum.voters and controller.quorum.bootstrap.servers.

A voter is `id@host:port`, a bootstrap server `host:port`.
"""

import re
from typing import Final, NamedTuple

from ottla.config.definition import ConfigError, Value, invalid_value

_HOST_AND_PORT: Final = r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)"
_VOTERS: Final = "controller.quorum.voters"
_VOTER_FORM: Final = "Each entry should be in the form `{id}@{host}:{port}`."
_SERVER_FORM: Final = 'Each entry should be in the form "{host}:{port}"'


class Voter(NamedTuple):
    """A controller of the quorum."""

    node_id: int
    host: str
    port: int


def parse_voters(entries: tuple[str, ...]) -> list[Voter]:
    """The voters of controller.quorum.voters; raises ConfigError."""
    voters = []
    for entry in entries:
        node_id, at, address = entry.partition("@")
        if not at or not address or "@" in address:
            raise ConfigError(f"Invalid configuration value for {_VOTERS}. {_VOTER_FORM}")
        if not re.fullmatch(r"[+-]?\d+", node_id):
            raise ConfigError(f"Failed to parse voter ID as an integer from {node_id}")
        found = re.fullmatch(_HOST_AND_PORT, address)
        if found is None:
            raise ConfigError(
                f"Failed to parse host name from entry {entry} for the configuration {_VOTERS}. {_VOTER_FORM}"
            )
        voters.append(Voter(int(node_id), found.group(1), int(found.group(2))))
    return voters


class QuorumVoters:
    """Every entry must be a voter."""

    __slots__ = ()

    def check(self, name: str, value: Value) -> None:
        """Refuse what is no list of voters."""
        if not isinstance(value, tuple):
            raise invalid_value(name, value, "Value must be a list")
        parse_voters(value)

    def describe(self) -> str:
        """In Kafka's words."""
        return "non-empty list"


class BootstrapServers:
    """Every entry must be a host and a port."""

    __slots__ = ()

    def check(self, name: str, value: Value) -> None:
        """Refuse what is no list of addresses."""
        if not isinstance(value, tuple):
            raise invalid_value(name, value, "Value must be a list")
        for entry in value:
            if not re.fullmatch(_HOST_AND_PORT, entry):
                raise ConfigError(
                    f"Failed to parse host name from {entry} for the configuration {name}. {_SERVER_FORM}"
                )

    def describe(self) -> str:
        """In Kafka's words."""
        return "non-empty list"
