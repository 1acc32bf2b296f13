"""A Java trust store with the certificate authorities that Python trusts here.

A Java that comes as a package knows the public authorities only, while a machine may have its own, behind a
proxy for instance. The store is in the JKS format: a magic number, version 2, the entries (tag 2 for a
trusted certificate, alias, time, type, DER bytes), and the SHA-1 of password, the words "Mighty Aphrodite"
and all that went before.
"""

import hashlib
import os
import ssl
import struct
from pathlib import Path

PASSWORD = "changeit"


def trust_store_options(directory: Path) -> list[str]:
    """Write the store into `directory`; the options with which a Java uses it, none if it would be empty."""
    authorities = _authorities()
    if not authorities:
        return []
    store = directory / "authorities.jks"
    store.write_bytes(_jks(authorities))
    return [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"]


def _authorities() -> list[bytes]:
    """DER certificates of the files that OpenSSL, pip and requests would look into."""
    paths = ssl.get_default_verify_paths()
    variables = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
    files = [paths.cafile, *(os.environ.get(name) for name in variables)]
    found = [Path(name) for name in files if name and Path(name).is_file()]
    if paths.capath and Path(paths.capath).is_dir():
        found += [path for path in Path(paths.capath).iterdir() if path.is_file()]
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    certificates: dict[bytes, None] = {}
    for path in found:
        for part in path.read_text(errors="replace").split(begin)[1:]:
            der = ssl.PEM_cert_to_DER_cert(f"{begin}{part.split(end)[0]}{end}")
            certificates[der] = None
    return list(certificates)


def _jks(certificates: list[bytes]) -> bytes:
    def text(value: str) -> bytes:
        return struct.pack(">H", len(value)) + value.encode()

    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, der in enumerate(certificates):
        body += struct.pack(">I", 2) + text(f"authority-{number}") + struct.pack(">q", 0)
        body += text("X.509") + struct.pack(">I", len(der)) + der
    return body + hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()
