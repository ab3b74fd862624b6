"""A ledger and a witness by TLS on a server that proves its name, or does not: a real server, and real certificates."""

from __future__ import annotations

import datetime
import ipaddress
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from database_server import Server, running_server
from error_codes import ledger_refuses

from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.postgresql import PostgresDatabase, is_local
from dphist_pipeline.ledger.witness import Witness

# The loopback address in a spelling that the program does not know for it: so it is another machine's.
HOST = "127.1"
TLS_FILES = (("cert", "crt"), ("key", "key"))


class Authority:
    """Signs certificates for servers."""

    def __init__(self, name: str) -> None:
        self.name, self.key = _name(name), ec.generate_private_key(ec.SECP256R1())
        self.root = self._signed(self.name, self.key.public_key(), x509.BasicConstraints(True, None))

    def certificate(self, address: str) -> tuple[bytes, bytes]:
        """Certificate and key of a server at an address."""
        key = ec.generate_private_key(ec.SECP256R1())
        named = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        private = key.private_bytes(serialization.Encoding.PEM, *form)
        return self._signed(_name(address), key.public_key(), named), private

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, more: x509.ExtensionType) -> bytes:
        now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
        made = x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key)
        made = made.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
        signed = made.add_extension(more, critical=False).sign(self.key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Secured:
    """A server that listens at a port, and the addresses of two databases there, without a root certificate."""

    def __init__(self, server: Server) -> None:
        names = [str(sa.make_url(server.new_database()).database) for _ in range(2)]
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.server = server
        self.ledger, self.witness = (f"postgresql://postgres@{HOST}:{self.port}/{name}" for name in names)

    def restart(self, certificate: tuple[bytes, bytes] | None) -> None:
        """Starts the server anew, with a certificate or without TLS."""
        settings = ["listen_addresses=127.0.0.1", f"port={self.port}"]
        if certificate is not None:
            for name, content in zip(("crt", "key"), certificate, strict=True):
                path = self.server.folder / f"server.{name}"
                path.write_bytes(content)
                path.chmod(0o600)
                shutil.chown(path, self.server.folder.owner())
            settings += [f"ssl_{what}_file={self.server.folder}/server.{of}" for what, of in TLS_FILES] + ["ssl=on"]
        self.server.stop()
        self.server.start(*settings)


@pytest.fixture(scope="module")
def server() -> Iterator[Secured]:
    with running_server() as started:
        yield Secured(started)


def refused(address: str) -> str:
    """What a ledger and a witness that cannot be reached say, which is the same."""
    said = []
    for ask in (lambda: Ledger.create(address), lambda: Witness.at(address).enrol("store-1", "entry-1")):
        with ledger_refuses("file_unusable") as refusal:
            ask()
        said.append(str(refusal.value))
        assert "the connection was refused or lost" in said[-1] and "\n" not in said[-1]
    assert "witness" in said[1] and "ledger" in said[0]
    return said[0]


@pytest.mark.outside
def test_tls_is_accepted_with_the_right_root_only(server: Secured, tmp_path: Path) -> None:
    assert not is_local(HOST)
    office, stranger = Authority("office"), Authority("stranger")
    for authority, name in ((office, "office"), (stranger, "stranger")):
        (tmp_path / f"{name}.crt").write_bytes(authority.root)
    right, wrong = (f"?sslrootcert={tmp_path}/{name}.crt" for name in ("office", "stranger"))

    server.restart(office.certificate("127.0.0.1"))
    made = Ledger.create(server.ledger + right)
    assert Ledger.open(server.ledger + right, made.id).verify() == 1
    with PostgresDatabase.at(server.ledger + right).transaction("read") as connection:
        encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        assert connection.exec_driver_sql(encrypted).scalar() is True
    Witness.at(server.witness + right).enrol("store-1", "entry-1")
    assert "certificate verify failed" in refused(server.ledger + wrong)
    refused(server.ledger)  # by the roots of this machine

    server.restart(office.certificate("192.0.2.1"))
    assert "does not match host name" in refused(server.ledger + right)

    server.restart(None)
    assert "does not support SSL, but SSL was required" in refused(server.ledger + right)
