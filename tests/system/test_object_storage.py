"""Releases and their catalogue are copied to a bucket: all that is public, and nobody pays twice when a copy fails."""

from __future__ import annotations

import json
import shutil
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
    client,
    copied,
    drawn,
    manifest,
    object_server,
    objects,
    one_client,
    public_files,
    sent,
    spent,
)
from system.orchestrated import defined, materialized, said

from dphist_pipeline.publishing.manifest import NAME
from dphist_pipeline.releasing.public_folder import NotCopied, PublicFolder
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import FOLDER, Store, folder_content

pytestmark = [
    pytest.mark.stand_in("pictures", why="what a bucket does to a file is the same for every file"),
    pytest.mark.draws_alike,
]


def test_a_bucket_has_the_files_of_the_public_folder_and_nothing_else(copied: Office, bucket: ObjectServer):
    assert set(objects(bucket)) == {
        NAME,
        *(entry.object for entry in manifest(bucket).files.values()),
        *DERIVED[:2],
        "index.html",
    }
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
def test_a_replay_asks_three_times_and_sends_nothing(sent: Office, bucket: ObjectServer):
    bucket.seen.clear()
    again = sent.released()
    assert "copying" not in again.err
    assert [method for method, _ in bucket.seen] == ["GET", "HEAD", "HEAD"]


@pytest.mark.outside
def test_a_bucket_that_fails_costs_one_clear_message_and_no_second_draw(copied: Office, bucket: ObjectServer):
    before = objects(bucket)
    for code, says in (("AccessDenied", "access was denied"), ("InternalError", "says InternalError")):
        bucket.rule = lambda method, path, code=code: code if method == "PUT" else ""
        failed = copied.release()
        assert failed.code == (75 if code == "InternalError" else 1) and failed.err.count("error:") == 1
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
def test_another_host_of_the_ledger_publishes_to_a_prefix_of_its_own(sent: Office, bucket: ObjectServer):
    other, before = sent.folder / "other", objects(bucket)
    shutil.copytree(sent.store, other)
    (other / "confidential" / FOLDER).write_bytes(folder_content())
    ledger = f"sqlite:///{sent.store}/ledger.sqlite"
    with pytest.raises(NotCopied, match="the releases of another host of this ledger"):
        PublicFolder(Store.open(other, ledger, sent.witness)).copy()
    assert objects(bucket) == before
    elsewhere = f"s3://{BUCKET}/elsewhere"
    made = PublicFolder(replace(Store.open(other, ledger, sent.witness), public_address=elsewhere)).copy()
    assert made.sent == tuple(sorted(public_files(sent)))


@pytest.mark.outside
def test_two_processes_of_one_host_leave_one_whole_state(copied: Office, bucket: ObjectServer, one_client: None):
    bucket.rule = lambda method, path: "AccessDenied" if method == "PUT" else ""
    assert copied.release().code == 1
    bucket.rule = lambda method, path: ""
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(PublicFolder.copy, [PublicFolder(Store.open(copied.store))] * 2))
    assert sorted(bool(one.sent) for one in made) == [False, True]
    assert_same(bucket, copied)


@pytest.mark.outside
def test_an_altered_object_is_refused_by_readers_and_sent_again_by_a_check(
    sent: Office, bucket: ObjectServer, tmp_path: Path
):
    for path in ("wards/period=all/revision=1/histogram.parquet", "croissant.json"):
        entry = manifest(bucket).files[path]
        bucket.put(BUCKET, f"counts/{entry.object}", b"altered", states=entry.sha256)
        folder = tmp_path / path.partition("/")[0]
        refused = sent.run("store", "fetch", ADDRESS, folder)
        assert refused.code == 1 and f"{path} is missing or altered" in refused.err and "--check" in refused.err
        assert sent.run("store", "publish", "--store", sent.store, "--json").json["sent"] == []
        assert path in sent.run("store", "publish", "--check", "--store", sent.store, "--json").json["sent"]
        assert sent.run("store", "fetch", ADDRESS, folder).code == 0
        assert objects(bucket)[path] == public_files(sent)[path]


@pytest.mark.outside
def test_a_fetched_folder_answers_as_the_store_does(sent: Office, bucket: ObjectServer, tmp_path: Path):
    folder, where = tmp_path / "got", ("answer", "wards", "--where", "ward = surgery", "--json")
    for new in (len(public_files(sent)), 0):
        got = sent.run("store", "fetch", ADDRESS, folder, "--json")
        assert got.json["downloaded"] == new, got.err
    assert sent.run(*where, "--store", folder).out == sent.run(*where, "--store", sent.store).out
    assert Release.published(folder, "wards").audit == Release.published(sent.store, "wards").audit
    refused = sent.run("store", "fetch", ADDRESS, sent.folder / "data")
    assert refused.code == 1 and "holds something else" in refused.err
    refused = sent.run("store", "fetch", f"{ADDRESS}/nothing", tmp_path / "no")
    assert refused.code == 1 and "nobody publishes there" in refused.err and not (tmp_path / "no").exists()


@pytest.mark.outside
def test_a_run_of_dagster_copies_as_the_command_line_does(copied: Office, bucket: ObjectServer):
    definitions = defined(copied)
    with dg.DagsterInstance.ephemeral() as instance:
        bucket.rule = lambda method, path: "AccessDenied" if method == "PUT" else ""
        made = materialized(definitions, instance)
        (copied_check,) = (one for one in made.get_asset_check_evaluations() if one.check_name == "copied")
        assert made.success and not copied_check.passed and "access was denied" in str(copied_check.description)
        assert f"{ADDRESS} cannot be written" in str(copied_check.description)
        bucket.rule = lambda method, path: ""
        again = materialized(definitions, instance)
        assert all(one.passed for one in again.get_asset_check_evaluations() if one.check_name == "copied")
    assert_same(bucket, copied)
    assert spent(copied) == "1/2" and len(manifest(bucket).publications()) == 1
