"""Listeners: `NAME://host:port` entries, the security protocol of each name, and the rules between them.

An empty host stands for every interface. Names are case-insensitive and kept in capitals. The rules follow
Kafka's: names differ; ports differ unless one address is IPv4 and the other IPv6 (KIP-797), or the port is 0;
0.0.0.0 is nothing a client could connect to, so it may not be advertised.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ottla.config.definition import ConfigError
from ottla.wire.dataclass import dataclass

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ENTRY: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)\Z")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a listener is bound or advertised; an empty host means every interface."""

    name: str
    security_protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(text: str) -> dict[str, str]:
    """The security protocol of each listener name, from listener.security.protocol.map."""
    protocols: dict[str, str] = {}
    config = "listener.security.protocol.map"
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (part.strip() for part in entry.rpartition(":"))
        if not colon:
            raise ConfigError(f"Error parsing configuration property '{config}': {entry} is no pair")
        if protocol.upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(f"Invalid security protocol `{protocol}` defined in {config}")
        protocols[name.upper()] = protocol.upper()
    return protocols


def parse_endpoints(
    entries: Sequence[str], protocols: Mapping[str, str], *, distinct_ports: bool = True
) -> list[Endpoint]:
    """The endpoints of a listeners config; raises ConfigError."""
    shown = f"[{', '.join(entries)}]"
    failed = f"Error creating broker listeners from '{shown}'"
    endpoints = []
    for entry in entries:
        found = _ENTRY.match(entry)
        if found is None:
            raise ConfigError(f"{failed}: Unable to parse {entry} to a broker endpoint")
        name = found.group(1).upper()
        if name not in protocols:
            raise ConfigError(f"{failed}: No security protocol defined for listener {name}")
        port = int(found.group(3))
        if not 0 <= port <= 65535:
            raise ConfigError(f"{failed}: {port} is no port")
        endpoints.append(Endpoint(name, protocols[name], found.group(2), port))
    if len({endpoint.name for endpoint in endpoints}) != len(endpoints):
        raise ConfigError(f"{failed}: Each listener must have a different name, listeners: {shown}")
    if distinct_ports:
        _check_ports(endpoints, shown, failed)
    return endpoints


def _check_ports(endpoints: Sequence[Endpoint], shown: str, failed: str) -> None:
    by_port: dict[int, list[str]] = {}
    for endpoint in endpoints:
        if endpoint.port != 0:
            by_port.setdefault(endpoint.port, []).append(endpoint.host)
    for port, hosts in by_port.items():
        if len(hosts) == 1:
            continue
        versions = [_ip_version(host) for host in hosts]
        if versions.count(None) > 1:
            raise ConfigError(f"{failed}: Each listener must have a different port, listeners: {shown}")
        if len(hosts) > 2:
            raise ConfigError(
                f"{failed}: Each listener must have a different port unless exactly one listener has an IPv4 "
                f"address and the other IPv6 address, listeners: {shown}, port: {port}"
            )
        if set(versions) != {4, 6}:
            raise ConfigError(
                f"{failed}: If you have two listeners on the same port then one needs to be IPv4 and the "
                f"other IPv6, listeners: {shown}, port: {port}"
            )


def _ip_version(host: str) -> int | None:
    import ipaddress  # needed for two listeners on one port only, and slow to import

    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None
