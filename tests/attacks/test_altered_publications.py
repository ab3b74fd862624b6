"""What whoever can write to a public folder, or to a copy of one, may try on its readers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from office import Office
from refusing import check_refused

from dphist_pipeline.errors import DphistError
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged, audit_digest, digest_of
from dphist_pipeline.publishing.values_digests import digest_of_files
from dphist_pipeline.releasing.public_folder import PublicFolder
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Key, Store

pytestmark = [
    pytest.mark.stand_in("pictures", why="what a bucket does to a file is the same for every file"),
    pytest.mark.draws_alike,
]

PLACE = "wards/period=all/revision=1"


def test_a_copied_catalogue_reads_files_of_whoever_asks_it(released: Office, tmp_path: Path):
    got, secret = tmp_path / "got", tmp_path / "secret.csv"
    secret.write_text("c4n4ry\n")
    shutil.copytree(released.store / "public", got)
    columns = "1 AS estimate, 1 AS unbiased, 1 AS noise_error, 0 AS ci_lower, 2 AS ci_upper, 'unbiased' AS basis"
    told = f"SELECT {columns}, 1 AS cells, content AS note, '' AS reliability FROM read_text('{secret}')"
    macro = "dph_box(release, box := NULL, period := NULL, revision := NULL)"
    with duckdb.connect(str(got / "catalog.duckdb")) as catalogue:
        catalogue.execute(f"CREATE OR REPLACE MACRO {macro} AS TABLE {told}")
    ran = released.run("answer", "wards", "--store", got)
    check_refused(ran, "asks for files or the network, which no catalogue of ours does")
    assert "c4n4ry" not in ran.out + ran.err


def sealed(audit: dict[str, Any]) -> bytes:
    """An audit whose own digest holds, as anybody can make it."""
    facts = {name: fact for name, fact in audit.items() if name != "audit_digest"}
    return json.dumps({**facts, "audit_digest": audit_digest(facts)}, indent=2).encode()


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


LIES: dict[str, Any] = {
    "epsilon": "1/100",
    "account": "other",
    "spec_digest": "0" * 64,
    "reason": "none",
    "revision": 1.0,
}


def test_an_audit_that_says_other_than_the_ledger_is_refused(released: Office):
    audit = json.loads((released.published() / "audit.json").read_bytes())
    lies = {**LIES, "ledger": {**audit["ledger"], "hash": "0" * 64}}
    for fact, lie in lies.items():
        (released.published() / "audit.json").write_bytes(sealed({**audit, fact: lie}))
        says = "does not hold" if fact == "ledger" else f"{released.published()} "
        check_refused(released.run("ledger", "verify", "--store", released.store), says)


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
