"""An office whose releases are copied to a bucket of a server on this machine, and what lies there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from object_server import ObjectServer, running_object_server
from office import OPEN_HEALTH, Office

BUCKET = "office-public"
ADDRESS = f"s3://{BUCKET}/counts"


@pytest.fixture(scope="module")
def object_server() -> Iterator[ObjectServer]:
    with running_object_server() as server:
        yield server


@pytest.fixture
def bucket(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    """A server with one empty bucket, and the environment that finds it."""
    object_server.clear()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in object_server.environment().items():
        monkeypatch.setenv(name, value)
    object_server.make_bucket(BUCKET)
    return object_server


@pytest.fixture
def copied(bucket: ObjectServer, office: Office) -> Office:
    """An office whose releases are copied to the bucket, before its first one."""
    for words in (["init", "--public", ADDRESS], ["ledger", *OPEN_HEALTH]):
        done = office.run(*words, "--store", office.store)
        assert done.code == 0, done.err
    office.write_records()
    office.write_spec()
    return office


@pytest.fixture
def sent(copied: Office) -> Office:
    """As `copied`, after its first release."""
    copied.released()
    return copied


def objects(bucket: ObjectServer) -> dict[str, bytes]:
    """The objects below the prefix; nothing lies elsewhere."""
    found = bucket.objects(BUCKET)
    assert all(name.startswith("counts/") for name in found)
    return {name.removeprefix("counts/"): content for name, content in found.items()}


def public_files(office: Office) -> dict[str, bytes]:
    public = office.store / "public"
    return {path.relative_to(public).as_posix(): path.read_bytes() for path in public.rglob("*") if path.is_file()}


def spent(office: Office) -> str:
    return str(office.run("ledger", "show", "health", "--store", office.store, "--json").json[0]["spent"])


def drawn(office: Office) -> dict[str, bytes]:
    journal = office.store / "confidential" / "journal"
    return {str(path.relative_to(journal)): path.read_bytes() for path in journal.rglob("*") if path.is_file()}


def memory(office: Office) -> Path:
    """The file in which the office keeps what it sent."""
    (path,) = (office.store / "confidential" / "sent").iterdir()
    return path
