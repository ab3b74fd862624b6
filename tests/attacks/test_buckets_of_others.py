"""What whoever can write to a bucket may try on those who fetch from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from object_server import ObjectServer
from office import Office
from refusing import check_refused
from system.copied import ADDRESS, BUCKET, bucket, copied, object_server

from dphist_pipeline.publishing import fetching, object_store
from dphist_pipeline.publishing.manifest import NAME, VERSIONS, Entry, Manifest, ManifestDamaged, read_manifest
from dphist_pipeline.publishing.object_store import ObjectStore

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
        read_manifest(json.dumps({**WHOLE, **change}).encode(), ADDRESS)


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
    assert [file.name for file in got.rglob("*")] == [fetching.DRAFT]


def test_a_folder_that_takes_no_file_is_one_clear_message(office: Office, bucket: ObjectServer, tmp_path: Path):
    bucket.put(BUCKET, f"counts/{NAME}", Manifest("of", 1).text())
    (tmp_path / "file").touch()
    check_refused(office.run("store", "fetch", ADDRESS, tmp_path / "file" / "got"), "cannot be filled: Not a directory")


def test_a_fetched_catalogue_reads_files_of_whoever_asks_it(copied: Office, bucket: ObjectServer, tmp_path: Path):
    copied.released()
    got, secret = tmp_path / "got", tmp_path / "secret.csv"
    secret.write_text("c4n4ry\n")
    assert copied.run("store", "fetch", ADDRESS, got).code == 0
    columns = "1 AS estimate, 1 AS unbiased, 1 AS noise_error, 0 AS ci_lower, 2 AS ci_upper, 'unbiased' AS basis"
    told = f"SELECT {columns}, 1 AS cells, content AS note, '' AS reliability FROM read_text('{secret}')"
    macro = "dph_box(release, box := NULL, period := NULL, revision := NULL)"
    with duckdb.connect(str(got / "catalog.duckdb")) as catalogue:
        catalogue.execute(f"CREATE OR REPLACE MACRO {macro} AS TABLE {told}")
    ran = copied.run("answer", "wards", "--store", got)
    check_refused(ran, "asks for files or the network, which no catalogue of ours does")
    assert "c4n4ry" not in ran.out + ran.err
