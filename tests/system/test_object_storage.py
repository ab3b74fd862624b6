"""Releases and their catalogue are copied to a bucket: all that is public, and nobody pays twice when a copy fails."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from object_server import KEYS, ObjectServer
from office import DERIVED, RECORDS, Office
from system.copied import (
    ADDRESS,
    BUCKET,
    assert_same,
    bucket,
    content_of,
    copied,
    drawn,
    manifest,
    object_server,
    objects,
    one_client,
    public_files,
    spent,
)
from system.orchestrated import defined, materialized, said

from dphist_pipeline.publishing.manifest import NAME
from dphist_pipeline.publishing.published_files import audit_digest
from dphist_pipeline.releasing import public_copy, publisher
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store


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


@pytest.mark.outside
def test_a_replay_asks_twice_and_sends_nothing(copied: Office, bucket: ObjectServer):
    copied.released()
    bucket.seen.clear()
    again = copied.released()
    assert "copying" not in again.err
    assert [method for method, _ in bucket.seen] == ["GET", "HEAD"]


@pytest.mark.outside
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
    assert refused.code == 1 and "has no bucket: `dphist store publish --to s3://bucket/prefix`" in refused.err


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


@pytest.mark.outside
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


@pytest.mark.outside
def test_two_publishers_at_once_leave_one_state_with_the_releases_of_both(
    copied: Office, bucket: ObjectServer, one_client: None
):
    """Two stores of one ledger, each with a release that the other does not have."""
    copied.released()
    other = copied.folder / "other"
    shutil.copytree(copied.store, other)
    for name in ("here", "there"):
        copied.write_spec(release=name)
        bucket.rule = lambda method, path: "AccessDenied"
        assert copied.release().code == 1
    bucket.rule = lambda method, path: ""
    (copied.store / "public" / "there").rename(other / "public" / "there")
    ledger = f"sqlite:///{copied.store}/ledger.sqlite"
    stores = [Store.open(copied.store), Store.open(other, ledger, copied.witness)]
    barrier = threading.Barrier(2)

    def publish(store: Store) -> public_copy.Copied:
        barrier.wait(60)
        return publisher.publish_copy(store)

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(publish, stores))
    later = [place for one in done for place in one.taken]
    assert later  # whoever came second took what the other had
    for store in stores:
        publisher.publish_copy(store)
    places = {f"{name}/period=all/revision=1" for name in ("wards", "here", "there")}
    assert manifest(bucket).publications() == places
    for store in stores:
        assert {path for path in content_of(store) if path.endswith("audit.json")} == {
            f"{p}/audit.json" for p in places
        }
        store.verify()
    named = {path: objects(bucket)[entry.object] for path, entry in manifest(bucket).files.items()}
    assert named == content_of(stores[1])


@pytest.mark.outside
def test_what_only_a_bucket_has_and_no_ledger_paid_for_is_left_there(copied: Office, bucket: ObjectServer):
    copied.released()
    published = copied.store / "public" / "wards"
    shutil.rmtree(published)
    mended = copied.run("store", "publish", "--store", copied.store, "--json").json
    assert mended["taken"] == ["wards/period=all/revision=1"] and mended["only_there"] == []
    assert_same(bucket, copied)
    audit = published / "period=all" / "revision=1" / "audit.json"
    facts = {name: fact for name, fact in json.loads(audit.read_bytes()).items() if name != "audit_digest"}
    facts["ledger"]["hash"] = "0" * 64
    forged = json.dumps({**facts, "audit_digest": audit_digest(facts)}).encode()
    shutil.rmtree(published)
    known, path = manifest(bucket), "wards/period=all/revision=1/audit.json"
    entry = replace(known.files[path], sha256=hashlib.sha256(forged).hexdigest(), size=len(forged))
    bucket.put(BUCKET, f"counts/{path}", forged)
    bucket.put(BUCKET, f"counts/{NAME}", replace(known, files={**known.files, path: entry}).text())
    left = copied.run("store", "publish", "--store", copied.store)
    assert left.code == 0 and "only there, and not vouched for by this ledger: wards/period=all/revision=1" in left.out
    assert not published.exists() and "wards/period=all/revision=1" in manifest(bucket).publications()


@pytest.mark.outside
def test_an_altered_object_is_refused_by_readers_and_sent_again_by_a_check(
    copied: Office, bucket: ObjectServer, tmp_path: Path
):
    copied.released()
    for path in ("wards/period=all/revision=1/histogram.parquet", "croissant.json"):
        bucket.put(BUCKET, f"counts/{manifest(bucket).files[path].object}", b"altered")
        folder = tmp_path / path.partition("/")[0]
        refused = copied.run("store", "fetch", ADDRESS, folder)
        assert refused.code == 1 and f"{path} is missing or altered" in refused.err and "--check" in refused.err
        assert copied.run("store", "publish", "--store", copied.store, "--json").json["sent"] == []
        assert path in copied.run("store", "publish", "--check", "--store", copied.store, "--json").json["sent"]
        assert copied.run("store", "fetch", ADDRESS, folder).code == 0


@pytest.mark.outside
def test_a_fetched_folder_answers_as_the_store_does(copied: Office, bucket: ObjectServer, tmp_path: Path):
    copied.released()
    folder, where = tmp_path / "got", ("answer", "wards", "--where", "ward = surgery", "--json")
    for new in (len(public_files(copied)), 0):
        got = copied.run("store", "fetch", ADDRESS, folder, "--json")
        assert got.json["downloaded"] == new, got.err
    assert copied.run(*where, "--store", folder).out == copied.run(*where, "--store", copied.store).out
    assert Release.published(folder, "wards").audit == Release.published(copied.store, "wards").audit
    refused = copied.run("store", "fetch", ADDRESS, copied.folder / "data")
    assert refused.code == 1 and "holds something else" in refused.err
    refused = copied.run("store", "fetch", f"{ADDRESS}/nothing", tmp_path / "no")
    assert refused.code == 1 and "nobody publishes there" in refused.err and not (tmp_path / "no").exists()


@pytest.mark.outside
def test_a_run_of_dagster_copies_as_the_command_line_does(copied: Office, bucket: ObjectServer):
    definitions = defined(copied)
    with dg.DagsterInstance.ephemeral() as instance:
        bucket.rule = lambda method, path: "AccessDenied" if method == "PUT" else ""
        failed = materialized(definitions, instance)
        assert not failed.success and f"{ADDRESS} cannot be written: access was denied" in said(failed)
        bucket.rule = lambda method, path: ""
        assert materialized(definitions, instance).success
    assert_same(bucket, copied)
    assert spent(copied) == "1/2" and len(manifest(bucket).publications()) == 1
