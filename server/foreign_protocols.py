"""Name what was sent to a Kafka port by something that does not speak Kafka (KIP-498)."""

_PREFIXES: tuple[tuple[bytes, str], ...] = (
    (b"\x16\x03", "TLS"),
    (b"GET ", "HTTP"),
    (b"POST", "HTTP"),
    (b"PUT ", "HTTP"),
    (b"HEAD", "HTTP"),
    (b"OPTI", "HTTP"),
    (b"DELE", "HTTP"),
    (b"CONN", "HTTP"),
    (b"PRI ", "HTTP/2"),
    (b"SSH-", "SSH"),
)


def name_foreign_protocol(first_bytes: bytes) -> str | None:
    """The protocol whose opening bytes these are, or None."""
    for prefix, name in _PREFIXES:
        if first_bytes.startswith(prefix):
            return name
    return None
