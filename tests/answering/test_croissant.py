"""`dphist export --to croissant` as mlcroissant reads it: valid, and the records that it loads are the current ones."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import by_hand
import pyarrow.parquet as pq
import pytest
from by_hand import AGE

from dphist_pipeline.answering import latest_cells
from dphist_pipeline.answering.exports.formats import write_export
from dphist_pipeline.answering.exports.rows import Exported
from dphist_pipeline.errors import Refused
from dphist_pipeline.publishing.derived_files import DerivedFiles

pytestmark = pytest.mark.stand_in("pictures", why="a description has none")

WEEKS = ("2026-03-02", "2026-03-09")
COUNTY = {"column": "county", "values": ["01", "=2"], "labels": ["North", ""], "levels": {"state": ["A", "B"]}}
DAY = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-01-19", "other": True}
AXES: list[dict[str, Any]] = [AGE, COUNTY, DAY]


@pytest.fixture
def public(tmp_path: Path) -> Path:
    for week, revision in ((WEEKS[0], 1), (WEEKS[0], 2), (WEEKS[1], 1)):
        ends = {
            "period_start": f"{week}T00:00:00+01:00",
            "period_end": f"2026-03-{int(week[-2:]) + 7:02}T00:00:00+01:00",
        }
        made = by_hand.estimate(AXES)
        by_hand.publish(tmp_path / "public", made, AXES, period=week, revision=revision, title="Visits", **ends)
    DerivedFiles(tmp_path / "public").write_current_files(tmp_path)
    latest_cells.write_latest_cells(tmp_path / "public", tmp_path)
    return tmp_path / "public"


def described(public: Path, file: Path) -> dict[str, Any]:
    write_export(Exported.read(public, "weekly"), "croissant", file, overwrite=True)
    content: dict[str, Any] = json.loads(file.read_bytes())
    return content


@pytest.mark.slow
@pytest.mark.parametrize("most", [10**6, 50])
def test_mlcroissant_finds_no_error_and_loads_the_current_records(
    public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(latest_cells, "MOST_ROWS", most)  # or a file for each period
    latest_cells.write_latest_cells(public, tmp_path)
    (tmp_path / "elsewhere").mkdir()
    described(public, file := tmp_path / "elsewhere" / "weekly.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
        data = mlcroissant.Dataset(jsonld=str(file))
        assert not data.metadata.ctx.issues.errors
        names = [records.name for records in data.metadata.record_sets]
        found = [record for name in names for record in data.records(name)]
    assert names == (["weekly"] if most > 50 else [f"weekly/period={week}" for week in WEEKS])
    rows = [{key.rpartition("/")[2]: value for key, value in record.items()} for record in found]
    assert {(row["period"], row["revision"]) for row in rows} == {(WEEKS[0].encode(), 2), (WEEKS[1].encode(), 1)}
    table = pq.ParquetFile(public / f"weekly/period={WEEKS[1]}/revision=1/histogram.parquet").read()
    mine = [row["estimate"] for row in rows if row["period"] == WEEKS[1].encode()]
    assert mine == table["estimate"].to_pylist() and len(rows) == 2 * table.num_rows


def test_it_says_whose_files_these_are_where_and_what_each_column_is(public: Path, tmp_path: Path) -> None:
    content = described(public, tmp_path / "weekly.json")
    assert "license" not in content and content["temporalCoverage"] == "2026-03-02/2026-03-15"
    (file,) = content["distribution"]
    assert (tmp_path / file["contentUrl"]).is_file() and content["datePublished"] == "2026-03-10"
    (records,) = content["recordSet"]
    names = [field["source"]["extract"]["column"] for field in records["field"]]
    assert names == pq.read_schema(public / "weekly/latest/cells.parquet").names
    assert all(field["description"] for field in records["field"])
    about = {"license": "https://creativecommons.org/licenses/by/4.0/", "publisher": "Office", "spatial": "DEU"}
    about |= {"citation": "Office (2026).", "address": "https://office.example/counts", "contact": "a@office.example"}
    (public.parent / "about.json").write_text(json.dumps(about))
    content = described(public, tmp_path / "weekly.json")
    assert [content[name] for name in ("license", "citeAs", "spatialCoverage")] == [
        *(about["license"], "Office (2026).", "DEU")
    ]
    assert content["publisher"]["email"] == "a@office.example"
    assert content["distribution"][0]["contentUrl"] == "https://office.example/counts/weekly/latest/cells.parquet"


def test_it_describes_the_whole_release(public: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="leave out --period"):
        write_export(Exported.read(public, "weekly", period=WEEKS[0]), "croissant", tmp_path / "x.json")
