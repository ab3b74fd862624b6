"""`croissant.json` as mlcroissant reads it: valid, and the records that it loads are those that are current."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import by_hand
import pyarrow.parquet as pq
import pytest
from by_hand import AGE, WARD
from office import Office

from dphist_pipeline.answering import croissant
from dphist_pipeline.answering.croissant import write_croissant
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.published_files import PublishedFolder, read_audit

pytestmark = [
    pytest.mark.slow,
    pytest.mark.draws_alike,
]

WEEKS = ("2026-03-02", "2026-03-09")
COUNTY = {"column": "county", "values": ["01", "=2"], "labels": ["North", ""], "levels": {"state": ["A", "B"]}}
DAY = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-01-19", "other": True}


def publish(public: Path, axes: list[dict[str, Any]], period: str = WEEKS[0], **more: Any) -> Path:
    return by_hand.publish(public, by_hand.estimate(axes), axes, period=period, **more).path


@pytest.fixture
def public(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    for period, revision in ((WEEKS[0], 1), (WEEKS[0], 2), (WEEKS[1], 1)):
        publish(tmp_path / "public", [AGE, COUNTY, DAY], period, revision=revision, title="Visits")
    publish(tmp_path / "public", [WARD], "all", release="beds")
    return written(tmp_path / "public")


def written(public: Path) -> Path:
    DerivedFiles(public).write_current_files(public.parent / "scratch")
    write_croissant(public, public.parent / "scratch")
    return public


def test_mlcroissant_finds_no_error_and_loads_the_current_records(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
        data = mlcroissant.Dataset(jsonld=str(public / "croissant.json"))
        assert not data.metadata.ctx.issues.errors
        assert [records.name for records in data.metadata.record_sets] == ["beds", "weekly"]
        monkeypatch.chdir(public)
        found = list(data.records("weekly"))
    assert len(found) == 2 * 5 * 2 * 3
    assert {record["weekly/period"] for record in found} == {week.encode() for week in WEEKS}
    assert {(record["weekly/period"], record["weekly/revision"]) for record in found} == {
        (WEEKS[0].encode(), 2),
        (WEEKS[1].encode(), 1),
    }
    table = pq.ParquetFile(public / "weekly" / f"period={WEEKS[1]}" / "revision=1" / "histogram.parquet").read()
    mine = [record for record in found if record["weekly/period"] == WEEKS[1].encode()]
    assert [record["weekly/estimate"] for record in mine] == table["estimate"].to_pylist()


def test_the_description_says_whose_tables_these_are_and_from_when(public: Path) -> None:
    content = json.loads((public / "croissant.json").read_bytes())
    days = {
        str((read_audit(path.parent)["ledger"] or {}).get("charged_at", ""))[:10] for path in public.rglob("audit.json")
    }
    assert content.get("datePublished", "") == max(days) and "license" not in content
    assert content["citeAs"].startswith("Differentially private counts: beds, weekly")
    about = {
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "publisher": "Office",
        "citation": "Office (2026).",
    }
    for text in (json.dumps(about), "[]", "{", json.dumps({"license": 4})):
        (public.parent / "about.json").write_text(text)
        content = json.loads((written(public) / "croissant.json").read_bytes())
        told = (content.get("license"), content.get("publisher", {}).get("name"), content["citeAs"])
        if text.startswith('{"license": "'):
            assert told == (about["license"], "Office", "Office (2026).")
        else:
            assert told[:2] == (None, None)


@pytest.mark.parametrize(
    ("contact", "told"), [("data@office.example", "email"), ("https://office.example/@desk", "url"), ("the desk", None)]
)
def test_only_an_address_of_mail_is_one(public: Path, contact: str, told: str | None) -> None:
    (public.parent / "about.json").write_text(json.dumps({"publisher": "Office", "contact": contact}))
    office = json.loads((written(public) / "croissant.json").read_bytes())["publisher"]
    assert {name: text for name, text in office.items() if name in ("email", "url")} == (
        {told: contact} if told else {}
    )


def test_the_description_says_where_and_when_the_records_are_from(public: Path) -> None:
    def told() -> list[Any]:
        content = json.loads((written(public) / "croissant.json").read_bytes())
        return [content.get(name) for name in ("spatialCoverage", "temporalCoverage", "inLanguage")]

    assert told() == [None, None, ["en"]]
    (public.parent / "about.json").write_text(
        json.dumps({"spatial": "DEU", "temporal": "2026-01-01/2026-12-31", "language": "de"})
    )
    assert told() == ["DEU", "2026-01-01/2026-12-31", ["de"]]
    for week, after in ((WEEKS[0], "2026-03-09"), (WEEKS[1], "2026-03-16")):
        days = {"period_start": f"{week}T00:00:00+01:00", "period_end": f"{after}T00:00:00+01:00"}
        publish(public, [WARD], week, release="visits", language="fr", **days)
    assert told() == ["DEU", "2026-03-02/2026-03-15", ["de", "fr"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
        assert not mlcroissant.Dataset(jsonld=str(public / "croissant.json")).metadata.ctx.issues.errors


def test_every_published_column_is_a_field_with_its_meaning(public: Path) -> None:
    content = json.loads((public / "croissant.json").read_bytes())
    for records in content["recordSet"]:
        folder = next((public / records["name"]).glob("period=*/revision=1"))
        names = [field["name"].partition("/")[2] for field in records["field"]]
        assert names == ["period", "revision", *pq.read_schema(folder / "histogram.parquet").names]
        assert all(field["description"] for field in records["field"])
    files = [files for files in content["distribution"] if files["@type"] == "cr:FileSet"]
    assert files[1]["includes"] == [
        f"weekly/period={WEEKS[0]}/revision=2/histogram.parquet",
        f"weekly/period={WEEKS[1]}/revision=1/histogram.parquet",
    ]


def test_it_follows_publications_withdrawals_and_other_axes(public: Path) -> None:
    def included() -> dict[str, list[str]]:
        content = json.loads((written(public) / "croissant.json").read_bytes())
        return {files["name"]: files["includes"] for files in content["distribution"] if "includes" in files}

    note = {"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}
    PublishedFolder(public / "beds" / "period=all" / "revision=1").mark_withdrawn(note, public.parent / "scratch")
    assert list(included()) == ["weekly/files"]
    publish(public, [AGE], "2026-03-16")
    assert included()["weekly/files"] == ["weekly/period=2026-03-16/revision=1/histogram.parquet"]


def test_only_releases_that_changed_are_read_again(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (public / "croissant.json").read_bytes()
    read: list[str] = []
    monkeypatch.setattr(croissant, "read_audit", lambda folder: read.append(folder.parts[-3]) or read_audit(folder))
    written(public)
    assert (read, (public / "croissant.json").read_bytes()) == ([], before)
    publish(public, [WARD], WEEKS[0], release="beds")
    written(public)
    assert read == ["beds"]
    grown = (public / "croissant.json").read_bytes()
    for content in (b"", b"[]", b'{"version": "1.0.0"}'):
        (public / "croissant.json").write_bytes(content)
        assert (written(public) / "croissant.json").read_bytes() == grown


def test_a_release_writes_it_and_a_replay_mends_it(office: Office) -> None:
    office.with_release()
    path = office.store / "public" / "croissant.json"
    before = path.read_bytes()
    assert b'"wards/files"' in before and path.stat().st_mode & 0o777 == 0o644
    path.unlink()
    path.with_name("index.html").unlink()
    office.released()
    assert path.read_bytes() == before
