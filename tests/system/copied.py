"""An office whose releases are copied to a bucket of a server on this machine, and what lies there."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from object_server import ObjectServer, running_object_server
from office import OPEN_HEALTH, Office

from dphist_pipeline.answering import building
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.publishing import object_store
from dphist_pipeline.publishing.bucket_copy import BucketCopy, Copied
from dphist_pipeline.publishing.manifest import NAME, VERSIONS, Manifest
from dphist_pipeline.publishing.pictures import Picture
from dphist_pipeline.releasing.public_folder import PublicFolder
from dphist_pipeline.releasing.store import Key, Store

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


@pytest.fixture(scope="module")
def client(object_server: ObjectServer) -> Callable[[str], Any]:
    """A client of that server, made when it is first asked for."""
    return cache(object_store._client)


@pytest.fixture
def one_client(bucket: ObjectServer, client: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Spares each call a client of its own, which takes longer than all of its requests."""
    monkeypatch.setattr(object_store, "_client", client)


@pytest.fixture
def copied(bucket: ObjectServer, office: Office, one_client: None) -> Office:
    """An office whose releases are copied to the bucket, before its first one."""
    return _copy_of(bucket, office, "opened")


@pytest.fixture
def sent(bucket: ObjectServer, office: Office, one_client: None) -> Office:
    """As `copied`, after its first release."""
    return _copy_of(bucket, office, "released")


def _copy_of(bucket: ObjectServer, office: Office, state: str) -> Office:
    """A copy of an office and its bucket that this process made first, where a module draws and builds alike."""
    ways = (Operator.load_or_make().public, Picture.svg, building.build_apart)
    if (state, *ways) not in _MADE:
        bucket.rule = lambda method, path: ""
        _MADE[state, *ways] = _made(bucket, state)
        bucket.clear()
        bucket.make_bucket(BUCKET)
    made, there = _MADE[state, *ways]
    bucket.restore(BUCKET, there)
    return made.copied_to(office.folder)


Made = tuple[Office, dict[str, tuple[bytes, dict[str, str]]]]  # an office, and what lies in its bucket
_MADE: dict[tuple[object, ...], Made] = {}


def _made(bucket: ObjectServer, state: str) -> Made:
    folder = Path(tempfile.mkdtemp(prefix="dphist_tests_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = Office(folder / "office")
    for words in (["init", "--public", ADDRESS], ["ledger", *OPEN_HEALTH]):
        done = made.run(*words, "--store", made.store)
        assert done.code == 0, done.err
    made.write_records()
    made.write_spec()
    if state == "released":
        made.released("--store", str(made.store))
    return made, bucket.saved(BUCKET)


def objects(bucket: ObjectServer) -> dict[str, bytes]:
    """The objects below the prefix; nothing lies elsewhere."""
    found = bucket.objects(BUCKET)
    assert all(name.startswith("counts/") for name in found)
    return {name.removeprefix("counts/"): content for name, content in found.items()}


def manifest(bucket: ObjectServer) -> Manifest:
    return Manifest.read(objects(bucket)[NAME], ADDRESS)


def public_files(office: Office) -> dict[str, bytes]:
    public = office.store / "public"
    return {path.relative_to(public).as_posix(): path.read_bytes() for path in public.rglob("*") if path.is_file()}


def assert_same(bucket: ObjectServer, office: Office) -> None:
    """The bucket has the public folder, by the manifest and under plain names, and nothing else."""
    local, there = public_files(office), objects(bucket)
    named = {path: there[entry.object] for path, entry in manifest(bucket).files.items()}
    assert named == local
    plain = {name: content for name, content in there.items() if name != NAME and not name.startswith(f"{VERSIONS}/")}
    assert plain == local
    versions = {name for name in there if name.startswith(f"{VERSIONS}/")}
    known = {entry.object for entry in manifest(bucket).files.values()} | set(manifest(bucket).retired)
    assert versions <= known
    for name in versions:
        assert hashlib.sha256(there[name]).hexdigest() == name.split("/")[2]


def spent(office: Office) -> str:
    return str(office.run("ledger", "show", "health", "--store", office.store, "--json").json[0]["spent"])


def drawn(office: Office) -> dict[str, bytes]:
    journal = office.store / "confidential" / "journal"
    return {str(path.relative_to(journal)): path.read_bytes() for path in journal.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def states(object_server: ObjectServer, tmp_path_factory: pytest.TempPathFactory) -> list[Store]:
    """A store as it was after its first release, a revision and the withdrawal of both."""
    office = Office(tmp_path_factory.mktemp("states") / "office").opened()
    found = []
    with office.witnessed():
        for number, words in enumerate(
            [
                ["release", office.folder / "spec.yaml"],
                ["release", office.folder / "spec.yaml", "--revise", "--reason", "corrected"],
                ["withdraw", "wards", "all", "--reason", "wrong file"],
            ]
        ):
            ran = office.run(*words, "--store", office.store)
            assert ran.code == 0, ran.err
            root = office.folder / f"store_{number}"
            shutil.copytree(office.store, root)
            found.append(Store.open(root, f"sqlite:///{office.store}/ledger.sqlite", office.witness))
    return found


def copy(store: Store, address: str) -> Copied:
    return PublicFolder(replace(store, public_address=address))._copy(Key("copied", "all", 1), lambda step: None)


def content_of(store: Store) -> dict[str, bytes]:
    return {
        path.relative_to(store.public).as_posix(): path.read_bytes()
        for path in store.public.rglob("*")
        if path.is_file()
    }


def fetched(address: str, folder: Path) -> dict[str, bytes]:
    made = BucketCopy(address).fetch(folder)
    return {name: (folder / name).read_bytes() for name in json.loads((made.folder / NAME).read_bytes())["files"]}
