"""Releases are copied to a bucket: its readers see whole states, and nobody pays twice when a copy fails."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from object_server import KEYS, ObjectServer, running_object_server
from office import DERIVED, OPEN_HEALTH, RECORDS, Office

from dphist_pipeline.publishing import bucket_copy
from dphist_pipeline.publishing.fetching import fetch
from dphist_pipeline.publishing.manifest import NAME, VERSIONS, Manifest, read_manifest
from dphist_pipeline.publishing.object_store import ObjectStore
from dphist_pipeline.releasing import public_copy
from dphist_pipeline.releasing.store import Key, Store

BUCKET = "office-public"
ADDRESS = f"s3://{BUCKET}/counts"


@pytest.fixture(scope="module")
def running() -> Iterator[ObjectServer]:
    with running_object_server() as server:
        yield server


@pytest.fixture
def bucket(running: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    """A server with one empty bucket, and the environment that finds it."""
    running.clear()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in running.environment().items():
        monkeypatch.setenv(name, value)
    running.make_bucket(BUCKET)
    return running


@pytest.fixture
def copied(bucket: ObjectServer, office: Office) -> Office:
    """An office whose releases are copied to the bucket, before its first one."""
    made = office.run("init", "--store", office.store, "--public", ADDRESS)
    assert made.code == 0, made.err
    assert office.run("ledger", *OPEN_HEALTH, "--store", office.store).code == 0
    office.write_records()
    office.write_spec()
    return office


def objects(bucket: ObjectServer) -> dict[str, bytes]:
    """The objects below the prefix; nothing lies elsewhere."""
    found = bucket.objects(BUCKET)
    assert all(name.startswith("counts/") for name in found)
    return {name.removeprefix("counts/"): content for name, content in found.items()}


def manifest(bucket: ObjectServer) -> Manifest:
    return read_manifest(objects(bucket)[NAME], ADDRESS)


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


def test_a_bucket_has_the_files_of_the_public_folder_and_nothing_else(copied: Office, bucket: ObjectServer):
    assert set(objects(bucket)) == {NAME, *(entry.object for entry in manifest(bucket).files.values()), *DERIVED[:2]}
    assert_same(bucket, copied)
    made = copied.released()
    assert f"copying to {ADDRESS}" in made.err and ADDRESS in made.out
    assert_same(bucket, copied)
    copied.released("--revise", "--reason", "the source was corrected")
    assert_same(bucket, copied)
    assert len(manifest(bucket).publications()) == 2
    withdrawn = copied.run("withdraw", "wards", "all", "--reason", "wrong file", "--store", copied.store)
    assert withdrawn.code == 0, withdrawn.err
    assert_same(bucket, copied)
    for revision in (1, 2):
        there = objects(bucket)
        assert b"wrong file" in there[f"wards/period=all/revision={revision}/card.html"]
        assert "withdrawn" in json.loads(there[f"wards/period=all/revision={revision}/audit.json"])
    hidden = [name.encode() for name in RECORDS["patient"] if len(name) > 3] + [b"s3cret"]
    assert not [word for word in hidden if any(word in content for content in objects(bucket).values())]


def test_a_replay_asks_twice_and_sends_nothing(copied: Office, bucket: ObjectServer):
    copied.released()
    bucket.seen.clear()
    again = copied.released()
    assert "copying" not in again.err
    assert [method for method, _ in bucket.seen] == ["GET", "HEAD"]


def test_a_bucket_that_fails_costs_one_clear_message_and_no_second_draw(copied: Office, bucket: ObjectServer):
    before = objects(bucket)
    for code, says in (("AccessDenied", "access was denied"), ("InternalError", "says InternalError")):
        bucket.rule = lambda method, path, code=code: code if method == "PUT" else ""
        failed = copied.release()
        assert failed.code == 1 and failed.err.count("error:") == 1
        assert f"{ADDRESS} cannot be written" in failed.err and says in failed.err
        assert "nothing is spent again" in failed.err and "dphist store publish" in failed.err
        assert not [secret for secret in KEYS.values() if secret != "true" and secret in failed.out + failed.err]
        assert spent(copied) == "1/2" and objects(bucket) == before
    answers, published = drawn(copied), public_files(copied)
    bucket.rule = lambda method, path: ""
    done = copied.run("store", "publish", "--store", copied.store)
    assert done.code == 0 and "sent" in done.out
    assert_same(bucket, copied)
    assert "Already published" in copied.released().out
    assert (drawn(copied), spent(copied)) == (answers, "1/2")
    for name in ("wards/period=all/revision=1/histogram.parquet", "wards/period=all/revision=1/audit.json"):
        assert published[name] == objects(bucket)[name]


def test_a_store_without_a_bucket_has_nothing_to_publish(office: Office):
    refused = office.opened().run("store", "publish", "--store", office.store)
    assert refused.code == 1 and "has no bucket: `dphist init --public s3://bucket/prefix`" in refused.err


REFUSED = [
    *(
        (f"{kind}://bucket/x", "is not an address that releases can be copied to")
        for kind in ("gs", "az", "https", "abfss")
    ),
    *(
        (f"s3://{rest}", "is not the address of a bucket")
        for rest in ("", "b", "Bucket", "bucket//x", "bucket/../x", "k:s@bucket")
    ),
    ("bucket/x", "is not the address of a bucket"),
    ("s3://no-such-bucket/x", "there is no such bucket"),
]


@pytest.mark.parametrize(("address", "says"), REFUSED)
def test_init_refuses_what_it_cannot_publish_to_and_makes_nothing(
    office: Office, bucket: ObjectServer, address: str, says: str
):
    refused = office.run("init", "--store", office.store, "--public", address)
    assert refused.code == 1 and says in refused.err
    assert not office.store.exists()


def test_init_refuses_a_prefix_of_another_ledger_and_a_denied_one(copied: Office, bucket: ObjectServer):
    before, other = objects(bucket), copied.folder / "other"
    refused = copied.run("init", "--store", other, "--public", f"{ADDRESS}/")
    assert refused.code == 1 and "holds the releases of another ledger" in refused.err
    bucket.rule = lambda method, path: "AccessDenied"
    refused = copied.run("init", "--store", other, "--public", "s3://office-public/more")
    assert refused.code == 1 and "access was denied" in refused.err
    assert not other.exists() and objects(bucket) == before


def test_a_server_that_ignores_conditions_is_refused(office: Office, bucket: ObjectServer):
    bucket.ignores_conditions = True
    refused = office.run("init", "--store", office.store, "--public", ADDRESS)
    assert refused.code == 1 and "its server ignores the conditions of writes" in refused.err


@pytest.fixture(scope="module")
def states(running: ObjectServer, tmp_path_factory: pytest.TempPathFactory) -> list[Store]:
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


def copy(store: Store, address: str) -> public_copy.Copied:
    return public_copy.copy_to_bucket(replace(store, public_address=address), Key("copied", "all", 1), nothing)


def nothing(scratch: Path) -> None:
    """Builds no catalogue: the folder's own is whole."""


def content_of(store: Store) -> dict[str, bytes]:
    return {
        path.relative_to(store.public).as_posix(): path.read_bytes()
        for path in store.public.rglob("*")
        if path.is_file()
    }


def fetched(address: str, folder: Path) -> dict[str, bytes]:
    made = fetch(address, folder)
    return {name: (folder / name).read_bytes() for name in json.loads((made.folder / NAME).read_bytes())["files"]}


class Cut(BaseException):
    """Ends a call as a kill would, where nothing catches it."""


@pytest.mark.parametrize("after", range(3))
def test_a_copy_that_is_cut_short_shows_whole_states_and_goes_on(
    bucket: ObjectServer, states: list[Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
):
    monkeypatch.setattr(bucket_copy, "AT_ONCE", 1)
    ask, asked, last = ObjectStore._asked, count(1), 0

    def cutting(self: ObjectStore, *arguments: Any, **more: Any) -> Any:
        if next(asked) == cut_at:
            raise Cut
        return ask(self, *arguments, **more)

    for cut_at in range(1, 100):
        address = f"{ADDRESS}/{cut_at}"
        if after:
            copy(states[after - 1], address)
        asked = count(1)
        with monkeypatch.context() as cutting_short:
            cutting_short.setattr(ObjectStore, "_asked", cutting)
            try:
                copy(states[after], address)
                last = cut_at
                break
            except Cut:
                pass
        if after or f"{cut_at}/{NAME}" in objects(bucket):
            seen = fetched(address, tmp_path / str(cut_at))
            assert seen in (content_of(states[after]), content_of(states[after - 1])), cut_at
        sent = copy(states[after], address).sent
        assert len(sent) <= len(content_of(states[after]))
        there = {n.removeprefix(f"{cut_at}/"): c for n, c in objects(bucket).items() if n.startswith(f"{cut_at}/")}
        plain = {n: c for n, c in there.items() if n != NAME and not n.startswith(VERSIONS)}
        assert plain == content_of(states[after]) == fetched(address, tmp_path / "now" / str(cut_at)), cut_at
        assert copy(states[after], address).sent == ()
    assert last > 15
