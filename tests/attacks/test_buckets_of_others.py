"""What whoever can write to a bucket may try on those who fetch from it."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import office as offices
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from object_server import ObjectServer
from office import Office
from refusing import check_refused
from system.copied import (
    ADDRESS,
    BUCKET,
    bucket,
    client,
    manifest,
    object_server,
    objects,
    one_client,
    public_files,
    sent,
)

from dphist_pipeline.errors import DphistError
from dphist_pipeline.publishing import bucket_copy, object_store
from dphist_pipeline.publishing.manifest import NAME, VERSIONS, Entry, Manifest, ManifestDamaged, is_path
from dphist_pipeline.publishing.object_store import ObjectStore
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged, audit_digest, digest_of
from dphist_pipeline.publishing.values_digests import digest_of_files
from dphist_pipeline.releasing.public_folder import PublicFolder
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Key, Store

pytestmark = [
    pytest.mark.stand_in("pictures", why="what a bucket does to a file is the same for every file"),
    pytest.mark.draws_alike,
]

SHA = "a" * 64
WHOLE = json.loads(Manifest("of", 3).text())
FILES: list[tuple[str, Entry]] = [
    (f"{'w' * 300}/current.json", Entry(f"{'w' * 300}/current.json", SHA, 1)),
    ("croissant.json", Entry("croissant.json", SHA, 1 << 60)),
    (f"wards/period=all/revision=1/tables/{'t' * 300}/audit.json", Entry("croissant.json", SHA, 1)),
]
HOSTILE: list[dict[str, Any]] = [
    {"generation": True},
    {"generation": 10**4299},
    {"ledger": "\x1b[2J"},
    {"ledger": ["of"]},
    {"retired": {f"{VERSIONS}/../../others/x.json": "2026-01-01T00:00:00+00:00"}},
    *({"files": {path: vars(entry)}} for path, entry in FILES),
]


@pytest.mark.parametrize("change", HOSTILE)
def test_a_manifest_says_what_no_store_writes(change: dict[str, Any]):
    with pytest.raises(ManifestDamaged):
        Manifest.read(json.dumps({**WHOLE, **change}).encode(), ADDRESS)


def test_an_object_never_ends(bucket: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bucket.put(BUCKET, "counts/large", bytes(3 << 20))
    assert not ObjectStore(ADDRESS).download("large", tmp_path / "large", 1 << 20)
    assert (tmp_path / "large").stat().st_size <= 1 << 20
    monkeypatch.setattr(object_store, "MOST_READ", 1 << 20)
    with pytest.raises(object_store.ObjectStoreFailed, match="its large is larger than 1 MB"):
        ObjectStore(ADDRESS).read("large")


def test_a_manifest_claims_more_than_the_disk_has(office: Office, bucket: ObjectServer, tmp_path: Path):
    path, got = "wards/period=all/revision=1/audit.json", tmp_path / "got"
    bucket.put(BUCKET, f"counts/{NAME}", Manifest("of", 1, {path: Entry(path, SHA, 40 << 40)}).text())
    check_refused(office.run("store", "fetch", ADDRESS, got), "cannot be filled: it needs 43,980,465 MB")
    assert [file.name for file in got.rglob("*")] == [bucket_copy.DRAFT]


def test_a_folder_that_takes_no_file_is_one_clear_message(office: Office, bucket: ObjectServer, tmp_path: Path):
    bucket.put(BUCKET, f"counts/{NAME}", Manifest("of", 1).text())
    (tmp_path / "file").touch()
    check_refused(office.run("store", "fetch", ADDRESS, tmp_path / "file" / "got"), "cannot be filled: Not a directory")


def test_a_fetched_catalogue_reads_files_of_whoever_asks_it(sent: Office, bucket: ObjectServer, tmp_path: Path):
    got, secret = tmp_path / "got", tmp_path / "secret.csv"
    secret.write_text("c4n4ry\n")
    assert sent.run("store", "fetch", ADDRESS, got).code == 0
    columns = "1 AS estimate, 1 AS unbiased, 1 AS noise_error, 0 AS ci_lower, 2 AS ci_upper, 'unbiased' AS basis"
    told = f"SELECT {columns}, 1 AS cells, content AS note, '' AS reliability FROM read_text('{secret}')"
    macro = "dph_box(release, box := NULL, period := NULL, revision := NULL)"
    with duckdb.connect(str(got / "catalog.duckdb")) as catalogue:
        catalogue.execute(f"CREATE OR REPLACE MACRO {macro} AS TABLE {told}")
    ran = sent.run("answer", "wards", "--store", got)
    check_refused(ran, "asks for files or the network, which no catalogue of ours does")
    assert "c4n4ry" not in ran.out + ran.err


PLACE = "wards/period=all/revision=1"
PLANTED = ("{secret}", "../../../../{below}", "../../../confidential/secret.key", "tables/../../../../{below}")


def sealed(audit: dict[str, Any]) -> bytes:
    """An audit whose own digest holds, as anybody can make it."""
    facts = {name: fact for name, fact in audit.items() if name != "audit_digest"}
    return json.dumps({**facts, "audit_digest": audit_digest(facts)}, indent=2).encode()


def test_an_audit_names_files_of_the_host(sent: Office, bucket: ObjectServer):
    for secret in (sent.folder / "secret.key", sent.store / "confidential" / "secret.key"):
        secret.write_text("c4n4ry\n")
    published, left = json.loads((sent.published() / "audit.json").read_bytes()), manifest(bucket)
    for named in PLANTED:
        name = named.format(secret=sent.folder / "secret.key", below="secret.key")
        files = {**published["files"], name: hashlib.sha256(b"c4n4ry\n").hexdigest()}
        (sent.published() / "audit.json").write_bytes(sealed({**published, "files": files}))
        others = {path: entry for path, entry in left.files.items() if not path.startswith(PLACE)}
        bucket.put(BUCKET, f"counts/{NAME}", replace(left, files=others).text())
        check_refused(sent.run("store", "publish", "--store", sent.store), "has a missing or altered audit.json")
        check_refused(sent.release(), "has a missing or altered audit.json")
        assert not [content for content in bucket.objects(BUCKET).values() if b"c4n4ry" in content], named


def test_nothing_comes_back_from_a_bucket(sent: Office, bucket: ObjectServer):
    """A host whose folder is lost, and an audit in the bucket that names the operator's key."""
    published = {path: content for path, content in objects(bucket).items() if path.startswith(PLACE)}
    audit = json.loads(published[f"{PLACE}/audit.json"])
    audit["files"]["/etc/hostname"] = "a" * 64
    forged, there = sealed(audit), manifest(bucket)
    path = f"{PLACE}/audit.json"
    entry = replace(there.files[path], sha256=hashlib.sha256(forged).hexdigest(), size=len(forged))
    bucket.put(BUCKET, f"counts/{path}", forged)
    bucket.put(BUCKET, f"counts/{NAME}", replace(there, files={**there.files, path: entry}).text())
    shutil.rmtree(sent.store / "public" / "wards")
    before = objects(bucket)
    refused = sent.run("store", "publish", "--store", sent.store)
    assert refused.code == 1 and f"that the public folder does not have: {PLACE}" in refused.err
    assert objects(bucket) == before and not sent.published().exists()
    again = sent.released()  # from the journal, at no cost
    assert "spent" not in again.err and {path.name for path in sent.published().iterdir()} == set(offices.FILES)
    for path, content in objects(bucket).items():
        assert not path.startswith(PLACE) or path == f"{PLACE}/audit.json" or content == published[path]
    assert_whole(bucket, sent)


def assert_whole(bucket: ObjectServer, office: Office) -> None:
    """What the manifest names has the content of the public folder."""
    there = objects(bucket)
    named = {path: there[entry.object] for path, entry in manifest(bucket).files.items()}
    assert named == public_files(office)


def test_a_publication_that_never_was_is_named_and_dropped_when_asked(sent: Office, bucket: ObjectServer):
    there, path = manifest(bucket), "wards/period=all/revision=7/audit.json"
    entry = there.files[f"{PLACE}/audit.json"]
    forged = replace(there, files={**there.files, path: replace(entry, object=path)})
    bucket.put(BUCKET, f"counts/{NAME}", forged.text())
    check_refused(sent.run("store", "publish", "--store", sent.store), "names publications", "--drop")
    dropped = sent.run("store", "publish", "--drop", "--store", sent.store)
    assert dropped.code == 0 and "no longer in its manifest: wards/period=all/revision=7" in dropped.out
    assert_whole(bucket, sent)


def altered_values(folder: Path, digest_too: bool = False) -> None:
    """Adds a million to every cell and a script to the card, with every digest of a file made anew."""
    cells = pq.read_table(folder / "histogram.parquet")
    for name in ("estimate", "unbiased_estimate", "ci_lower", "ci_upper"):
        cells = cells.set_column(cells.column_names.index(name), name, pc.add(cells[name], 1e6))
    pq.write_table(cells, folder / "histogram.parquet")
    card = folder / "card.html"
    card.write_text(card.read_text() + "<script>alert(1)</script>")
    audit = json.loads((folder / "audit.json").read_bytes())
    audit["files"] = {name: digest_of(folder / name) for name in audit["files"]}
    if digest_too:
        audit["values_digest"] = digest_of_files(folder / "histogram.parquet", None)
    (folder / "audit.json").write_bytes(sealed(audit))


@pytest.fixture
def released(office: Office) -> Office:
    """An office with one release and no bucket."""
    return office.with_release()


def found_by_doctor(office: Office) -> dict[str, Any]:
    told = office.run("doctor", "--store", office.store, "--json").json["checks"]
    return {one["check"]: one for one in told}["publications"]


def test_altered_numbers_are_found_by_everybody_who_reads_them(released: Office):
    """A folder that somebody copied back from a bucket by hand."""
    altered_values(released.published())
    says = "has other values in its files than its audit says"
    for words in (["answer", "wards"], ["release", released.folder / "spec.yaml"], ["ledger", "verify"]):
        check_refused(released.run(*words, "--store", released.store), says)
    (released.store / "public" / "catalog.duckdb").unlink()
    (released.store / "public" / "wards" / "current.json").unlink()
    with pytest.raises(PublishedFilesDamaged, match=says):
        PublicFolder(Store.open(released.store)).refresh(Key("wards", "all", 1))
    found = found_by_doctor(released)
    assert found["state"] == "fault" and PLACE in found["seen"]


def test_altered_numbers_with_their_digest_are_not_what_the_ledger_recorded(released: Office):
    altered_values(released.published(), digest_too=True)
    says = "is not what the ledger recorded"
    for words in (["release", released.folder / "spec.yaml"], ["ledger", "verify"]):
        check_refused(released.run(*words, "--store", released.store), says)
    (released.store / "public" / "wards" / "current.json").unlink()
    with pytest.raises(PublishedFilesDamaged, match=says):
        PublicFolder(Store.open(released.store)).refresh(Key("wards", "all", 1))
    found = found_by_doctor(released)
    assert found["state"] == "fault" and says in found["mend"]


def test_altered_numbers_are_not_sent(sent: Office, bucket: ObjectServer):
    before = objects(bucket)
    for digest_too, says in ((False, "has other values in its files"), (True, "is not what the ledger recorded")):
        altered_values(sent.published(), digest_too)
        for words in (["store", "publish"], ["store", "publish", "--check"]):
            check_refused(sent.run(*words, "--store", sent.store), says)
        assert objects(bucket) == before


def test_a_file_that_was_altered_after_the_catalogue_was_made_is_not_sent(sent: Office, bucket: ObjectServer):
    card = sent.published() / "card.html"
    card.write_text(card.read_text() + "<script>alert(1)</script>")
    bucket.delete(BUCKET, f"counts/{NAME}")  # so that all is sent again
    refused = sent.run("store", "publish", "--store", sent.store)
    check_refused(refused, "has a missing or altered card.html")
    assert not [content for content in objects(bucket).values() if b"alert(1)" in content]


LIES: dict[str, Any] = {
    "epsilon": "1/100",
    "account": "other",
    "spec_digest": "0" * 64,
    "reason": "none",
    "revision": 1.0,
}


@pytest.mark.slow
def test_an_audit_that_says_other_than_the_ledger_is_refused(released: Office):
    audit = json.loads((released.published() / "audit.json").read_bytes())
    lies = {**LIES, "ledger": {**audit["ledger"], "hash": "0" * 64}}
    for fact, lie in lies.items():
        (released.published() / "audit.json").write_bytes(sealed({**audit, fact: lie}))
        says = "does not hold" if fact == "ledger" else f"{released.published()} "
        check_refused(released.run("ledger", "verify", "--store", released.store), says)


def test_folders_of_releases_that_are_links_are_refused(sent: Office, bucket: ObjectServer, tmp_path: Path):
    before = objects(bucket)
    for part in (sent.published().parents[1], sent.published().parent, sent.published()):
        part.rename(tmp_path / "elsewhere")
        part.symlink_to(tmp_path / "elsewhere")
        for words in (["store", "publish"], ["store", "publish", "--check"]):
            check_refused(sent.run(*words, "--store", sent.store), f"{part} is a link")
        part.unlink()
        (tmp_path / "elsewhere").rename(part)
    card = sent.published() / "card.html"
    card.rename(tmp_path / "card.html")
    card.symlink_to(tmp_path / "card.html")
    bucket.delete(BUCKET, f"counts/{NAME}")
    check_refused(sent.run("store", "publish", "--store", sent.store), f"{card} is a link")
    del before[NAME]
    assert objects(bucket) == before


def test_a_fetch_writes_through_no_link(sent: Office, bucket: ObjectServer, tmp_path: Path):
    got, outside = tmp_path / "got", tmp_path / "outside"
    (got / bucket_copy.DRAFT).mkdir(parents=True)
    outside.mkdir()
    (got / "wards").symlink_to(outside)
    check_refused(sent.run("store", "fetch", ADDRESS, got), "wards is a link in it")
    assert list(outside.iterdir()) == []


def test_what_is_named_is_not_deleted_though_a_manifest_says_that_it_is_old(sent: Office, bucket: ObjectServer):
    there = manifest(bucket)
    named = {entry.object: "2020-01-01T00:00:00+00:00" for entry in there.files.values() if VERSIONS in entry.object}
    bucket.put(BUCKET, f"counts/{NAME}", replace(there, retired=named).text())
    sent.write_spec(release="others")
    sent.released()  # what lists the publications of `wards` stays as it is
    assert_whole(bucket, sent)


def altered(told: Any, random: Random) -> Any:
    """A JSON value with one thing changed somewhere."""
    odd: list[Any] = [None, True, -1, 1 << 80, 1.5, "", "../x", "/etc/passwd", "a" * 64, [], {}, [[]], "\x00", "é"]
    if isinstance(told, dict) and told and random.random() < 0.85:
        name, way = random.choice(list(told)), random.random()
        if way < 0.1:
            return {other: fact for other, fact in told.items() if other != name}
        if way < 0.3:
            new = random.choice([f"../{name}", f"/{name}", f"{name}/..", "", name.upper(), f"{name}\n", "audit.json"])
            return {new if other == name else other: fact for other, fact in told.items()}
        return {**told, name: altered(told[name], random)}
    if isinstance(told, list) and told and random.random() < 0.8:
        place = random.randrange(len(told))
        return [*told[:place], altered(told[place], random), *told[place + 1 :]]
    return random.choice(odd)


def test_altered_manifests_name_nothing_outside(sent: Office, bucket: ObjectServer, tmp_path: Path):
    whole, random, read = json.loads(manifest(bucket).text()), Random(35), 0
    public, ours = sent.store / "public", public_files(sent)
    for number in range(10_000):
        told = altered(whole, random)
        try:
            found = Manifest.read(json.dumps(told).encode(), ADDRESS)
        except ManifestDamaged:
            continue
        read += 1
        assert Manifest.read(found.text(), ADDRESS) == found
        assert all(is_path(path) and ".." not in path.split("/") and path[0] != "/" for path in found.files)
        if read % 100 == 1:
            links = tmp_path / str(number)
            links.mkdir()
            planned = bucket_copy.plan(public, links, found, frozenset())
            assert planned.files.keys() <= ours.keys() and planned.sources.keys() <= ours.keys()
            assert all(source.read_bytes() == ours[path] for path, source in planned.sources.items())
            assert all(entry.sha256 == hashlib.sha256(ours[path]).hexdigest() for path, entry in planned.files.items())
    assert read > 500


@pytest.mark.parametrize("examples", [200, pytest.param(10_000, marks=pytest.mark.soak)])
def test_altered_audits_are_refused_or_change_no_value(released: Office, examples: int):
    audit, random = json.loads((released.published() / "audit.json").read_bytes()), Random(36)
    values = Release.published(released.store, "wards").arrow
    for number in range(examples):
        facts = altered({name: fact for name, fact in audit.items() if name != "audit_digest"}, random)
        content = sealed(facts) if isinstance(facts, dict) else json.dumps(facts).encode()
        (released.published() / "audit.json").write_bytes(content)
        try:
            made = Release.published(released.store, "wards")
            assert made.arrow.equals(values)
            if number % 20 == 0:
                made.answer(ward="surgery")
        except DphistError:
            continue
