"""What is public is sent to a bucket that is never read, and nobody pays twice when sending fails."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import dagster as dg
import pytest
from object_server import KEYS, ObjectServer
from office import RECORDS, Office
from system.copied import (
    ADDRESS,
    BUCKET,
    bucket,
    copied,
    drawn,
    memory,
    object_server,
    objects,
    public_files,
    sent,
    spent,
)
from system.doctored import examined
from system.orchestrated import defined, materialized

from dphist_pipeline.releasing.store import Store

pytestmark = [
    pytest.mark.stand_in("pictures", why="what a bucket does to a file is the same for every file"),
    pytest.mark.draws_alike,
]

__all__ = ["bucket", "copied", "object_server", "sent"]

PLACE = "wards/period=all/revision=1"


def publish(office: Office, *more: str) -> list[str]:
    """What `dphist store publish` sends."""
    done = office.run("store", "publish", *more, "--store", office.store, "--json")
    assert done.code == 0, done.err
    return list(done.json["sent"])


def test_a_bucket_has_the_files_of_the_public_folder_and_nothing_is_read_there(copied: Office, bucket: ObjectServer):
    assert set(objects(bucket)) == {"catalog.duckdb", "index.html"}
    released = copied.released()
    assert f"copying to {ADDRESS}" in released.err and objects(bucket) == public_files(copied)
    copied.released("--revise", "--reason", "the source was corrected")
    assert objects(bucket) == public_files(copied)
    withdrawn = copied.run("withdraw", "wards", "all", "--reason", "wrong file", "--store", copied.store)
    assert withdrawn.code == 0, withdrawn.err
    assert objects(bucket) == public_files(copied)
    for revision in (1, 2):
        there = objects(bucket)
        assert b"wrong file" in there[f"wards/period=all/revision={revision}/card.html"]
        assert "withdrawn" in json.loads(there[f"wards/period=all/revision={revision}/audit.json"])
    hidden = [name.encode() for name in RECORDS["patient"] if len(name) > 3] + [b"s3cret"]
    assert not [word for word in hidden if any(word in content for content in objects(bucket).values())]
    asked = {method for method, path in bucket.seen if path.startswith(f"/{BUCKET}/")}
    assert asked <= {"PUT", "POST"}  # POST begins and ends a file that goes in parts


def test_files_have_types_and_pages_come_after_what_they_name(copied: Office, bucket: ObjectServer):
    bucket.seen.clear()
    copied.released()
    headers = {name: header for name, (_, header) in bucket.saved(BUCKET).items()}
    assert headers["counts/index.html"]["content-type"] == "text/html; charset=utf-8"
    assert headers["counts/index.html"]["cache-control"] == "no-cache"
    assert "cache-control" not in headers[f"counts/{PLACE}/histogram.parquet"]
    paths = [path.removeprefix(f"/{BUCKET}/counts/") for _, path in bucket.seen]
    last = [path for path in paths if path == "catalog.duckdb" or path.endswith("index.html")]
    assert paths[-len(last) :] == last and last[0] == "catalog.duckdb" and len(last) == 3


def test_a_replay_asks_nothing(sent: Office, bucket: ObjectServer):
    bucket.seen.clear()
    assert "copying" not in sent.released().err
    assert publish(sent) == [] and bucket.seen == []


def test_all_is_sent_again_where_it_is_not_known_what_was_sent(sent: Office, bucket: ObjectServer):
    everything = sorted(public_files(sent))
    older = memory(sent).read_bytes()
    assert publish(sent, "--all") == everything and publish(sent) == []
    for content in (None, b"{", b"[1]", b"7"):
        memory(sent).unlink() if content is None else memory(sent).write_bytes(content)
        if content is None:
            memory_of = sent.store / "confidential" / "sent"
            assert not list(memory_of.iterdir())
        assert publish(sent) == everything, content
    sent.run("withdraw", "wards", "all", "--reason", "wrong file", "--store", sent.store)
    memory(sent).write_bytes(older)
    assert f"{PLACE}/card.html" in publish(sent)
    shutil.copytree(sent.store / "public", sent.folder / "backup")
    shutil.rmtree(sent.store / "public")
    shutil.copytree(sent.folder / "backup", sent.store / "public")
    assert publish(sent) == sorted(public_files(sent))


@pytest.mark.outside
def test_a_bucket_that_fails_costs_one_clear_message_and_no_second_draw(copied: Office, bucket: ObjectServer):
    before = objects(bucket)
    for code, says in (("AccessDenied", "PermissionDeniedError"), ("InternalError", "GenericError")):
        bucket.rule = lambda method, path, code=code: code
        failed = copied.release()
        assert failed.code == (75 if code == "InternalError" else 1) and failed.err.count("error:") == 1
        assert f"{ADDRESS} cannot be written: {says}" in failed.err
        assert "nothing is spent again" in failed.err and "dphist store publish" in failed.err
        assert not [secret for secret in KEYS.values() if secret != "true" and secret in failed.out + failed.err]
        assert spent(copied) == "1/2" and objects(bucket) == before
    answers = drawn(copied)
    bucket.rule = lambda method, path: ""
    assert publish(copied)
    assert "Already published" in copied.released().out
    assert objects(bucket) == public_files(copied) and (drawn(copied), spent(copied)) == (answers, "1/2")


@pytest.mark.outside
def test_a_copy_that_was_cut_short_goes_on(copied: Office, bucket: ObjectServer):
    bucket.rule = lambda method, path: "AccessDenied" if path.endswith("catalog.duckdb") else ""
    assert copied.release().code == 1
    assert f"{PLACE}/card.html" in objects(bucket) and "wards/index.html" not in objects(bucket)
    assert "not sent" in examined(copied)["bucket"]["seen"]
    bucket.rule = lambda method, path: ""
    assert f"{PLACE}/card.html" not in publish(copied) and objects(bucket) == public_files(copied)
    assert "was sent to" in examined(copied)["bucket"]["seen"]


REFUSED = ("https://bucket/x", "s3://", "s3://b", "s3://Bucket", "s3://bucket/../x", "s3://k:s@bucket", "bucket/x")


@pytest.mark.parametrize("address", REFUSED)
def test_what_is_no_address_is_refused_and_changes_nothing(office: Office, address: str):
    refused = office.run("init", "--store", office.store, "--public", address)
    assert refused.code == 1 and "is not the address of a bucket" in refused.err and not office.store.exists()


def test_a_store_without_a_bucket_has_nothing_to_publish(office: Office):
    refused = office.opened().run("store", "publish", "--store", office.store)
    assert refused.code == 1 and "has no bucket: `dphist store publish --to s3://bucket/prefix`" in refused.err
    assert "copied to no bucket" in examined(office)["bucket"]["seen"]


@pytest.mark.parametrize("server", ["nonsense", "http://127.0.0.1:9"])
def test_a_server_that_is_none_is_one_message(office: Office, monkeypatch: pytest.MonkeyPatch, server: str):
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": server}.items():
        monkeypatch.setenv(name, value)
    refused = office.run("init", "--store", office.store, "--public", ADDRESS)
    assert refused.code != 0 and f"{ADDRESS} cannot be written" in refused.err
    assert "s3cret" not in refused.err


def test_a_bucket_is_changed_after_the_store_was_made(sent: Office, bucket: ObjectServer):
    (sent.store / "store.json").chmod(0o644)
    before = objects(bucket)
    bucket.make_bucket("elsewhere")
    changed = sent.run("store", "publish", "--to", "s3://elsewhere/new/", "--store", sent.store)
    assert changed.code == 0 and f"{ADDRESS} stays as it is" in changed.out
    assert Store.open(sent.store).public_address == "s3://elsewhere/new"
    assert stat.S_IMODE((sent.store / "store.json").stat().st_mode) == 0o644
    assert {name.removeprefix("new/") for name in bucket.objects("elsewhere")} == set(public_files(sent))
    assert objects(bucket) == before


def test_a_publication_that_the_ledger_does_not_know_is_left_out_and_all_else_is_sent(
    sent: Office, bucket: ObjectServer
):
    sent.write_spec(release="others")
    sent.released()
    before = objects(bucket)
    file = sent.published() / "histogram.parquet"
    file.write_bytes(file.read_bytes() + b"x")
    done = sent.run("store", "publish", "--all", "--store", sent.store)
    assert done.code == 1 and f"left out, not what the ledger recorded: {PLACE}" in done.out
    assert objects(bucket) == before


def test_who_withdraws_what_is_damaged_is_told_what_stays_in_the_bucket(sent: Office, bucket: ObjectServer):
    (sent.published() / "histogram.parquet").write_bytes(b"PAR1")
    done = sent.run("withdraw", "wards", "all", "--reason", "wrong file", "--store", sent.store)
    assert done.code == 0 and f"delete them there: {ADDRESS}/wards/period=all/" in " ".join(done.out.split())
    assert f"{PLACE}/histogram.parquet" in objects(bucket)


def planted(path: Path, what: str, elsewhere: Path) -> None:
    """Puts a link, a pipe or a link to a folder in the place of a file or folder."""
    path.rename(elsewhere)
    os.mkfifo(path) if what == "pipe" else path.symlink_to(elsewhere)


PLANTED = [
    *(("link", path) for path in (f"{PLACE}/card.html", f"{PLACE}/histogram.parquet", "catalog.duckdb")),
    *(("pipe", path) for path in (f"{PLACE}/card.html", "wards/index.html")),
    *(("folder", path) for path in ("wards", "wards/period=all", PLACE, "wards/latest")),
]


@pytest.mark.parametrize(("what", "path"), PLANTED)
def test_no_link_and_no_pipe_is_followed(sent: Office, bucket: ObjectServer, tmp_path: Path, what: str, path: str):
    secret, before = tmp_path / "elsewhere", objects(bucket)
    planted(sent.store / "public" / path, what, secret)
    for file in [secret] if secret.is_file() else [one for one in secret.rglob("*") if one.is_file()]:
        file.write_bytes(file.read_bytes() + b"c4n4ry")
    sent.run("store", "publish", "--all", "--store", sent.store)
    assert not [name for name, content in objects(bucket).items() if b"c4n4ry" in content]
    assert objects(bucket).keys() == before.keys()


@pytest.mark.outside
def test_a_run_of_dagster_copies_as_the_command_line_does(copied: Office, bucket: ObjectServer):
    definitions = defined(copied)
    with dg.DagsterInstance.ephemeral() as instance:
        bucket.rule = lambda method, path: "AccessDenied"
        made = materialized(definitions, instance)
        (check,) = (one for one in made.get_asset_check_evaluations() if one.check_name == "copied")
        assert made.success and not check.passed and f"{ADDRESS} cannot be written" in str(check.description)
        bucket.rule = lambda method, path: ""
        again = materialized(definitions, instance)
        assert all(one.passed for one in again.get_asset_check_evaluations() if one.check_name == "copied")
    assert objects(bucket) == public_files(copied) and spent(copied) == "1/2"


@pytest.mark.outside
def test_names_that_form_1_had_are_emptied_once_in_every_bucket(sent: Office, bucket: ObjectServer):
    described, place = sent.store / "store.json", sent.store / "public" / PLACE / "pages.json"
    described.write_text(described.read_text().replace('"schema_version": 2', '"schema_version": 1'))
    place.write_text("what was withdrawn")
    lost = "wards/downloads/period=all/revision=1/table.txt"  # sent once, and deleted here since
    memory(sent).write_text(json.dumps(json.loads(memory(sent).read_text()) | {lost: [1, 2, 3, 4, 5]}))
    for name in (lost, f"{PLACE}/pages.json"):
        bucket.put(BUCKET, f"counts/{name}", b"what was withdrawn")
    refused = sent.run("store", "publish", "--store", sent.store)
    assert refused.code == 1 and "dphist store upgrade" in refused.err
    told = sent.run("store", "upgrade", "--store", sent.store, "--json")
    assert told.code == 0 and told.json["gone"] == [lost, f"{PLACE}/pages.json"], told.err
    there = objects(bucket)
    assert (there.pop(lost), there.pop(f"{PLACE}/pages.json")) == (b"", b"") and there == public_files(sent)
    assert publish(sent) == []
    assert {lost, f"{PLACE}/pages.json"} <= {*publish(sent, "--to", f"s3://{BUCKET}/counts/elsewhere")}
    assert publish(sent) == []
