"""Public figures hold exactly in the whole tables of a family, and contradictory ones are refused before anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from office import Office
from system.test_families import AGE, COUNTIES, SEX, STATES, records

from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.mistakes import SpecError
from dphist_pipeline.spec.sources import CodeListFolders

COUNTY = {"column": "county", "values": COUNTIES, "other": True, "levels": {"state": STATES}}
FIGURES = "level,value,persons\nstate,north,1000\nstate,south,77\nstate,other,0\n"
FAMILY: dict[str, Any] = {
    "release": "family",
    "mechanism": "tables",
    "epsilon": 5,
    "tables": {"list": [["age", "sex"], ["county", "sex"], ["state"]], "invariants": "codes/figures.csv"},
    "axes": [AGE, SEX, COUNTY],
}


def spec_of(folder: Path, figures: str, **tables: Any) -> ReleaseSpec:
    (folder / "figures.csv").write_text(figures)
    (folder / "rows.parquet").touch()
    fields = {"source": "rows.parquet", "privacy_unit": "patient", "max_rows_per_unit": 2, "neighbours": "add_remove"}
    asked = {**FAMILY["tables"], "invariants": "figures.csv", **tables}
    return ReleaseSpec.from_attributes(
        {**fields, "account": "health", **FAMILY, "tables": asked},
        folder,
        code_lists=lambda: CodeListFolders((folder,), lambda path: False),
    )


@pytest.mark.slow
def test_public_figures_hold_exactly_in_whole_tables_alone(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(office.folder)
    office.opened()
    (office.folder / "codes").mkdir(exist_ok=True)
    (office.folder / "codes/figures.csv").write_text(FIGURES)
    office.write_records(records())
    office.write_spec(**FAMILY)
    refused = office.release()
    assert refused.code == 1 and "tables.invariants" in refused.err and "declares public" in refused.err
    assert office.run("ledger", "allow", "--code-lists", "codes", "--reason", "official").code == 0
    office.released()
    made = {name: Release.published(Store.open(office.store), f"family_{name}") for name in ("state", "county_sex")}
    for one in made.values():
        found = one.whole().group_by("state").agg(pl.col("whole_count").sum())
        assert dict(found.iter_rows()) == {"north": 1000, "south": 77, None: 0}
    # The estimates know nothing of them.
    assert made["state"].table.filter(pl.col("state") == "south")["estimate"][0] > 500
    audit = json.loads((office.published("family") / "audit.json").read_text())
    assert audit["invariants"] == {
        "level": "state",
        "counts": "persons",
        "figures": {"north": 1000, "south": 77, "other": 0},
    }
    card = (office.published("family") / "card.html").read_text()
    assert "count persons" in " ".join(card.split()) and "beyond them" in card


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ("level,value,people\nstate,north,1\n", "its column 'rows' is not there"),
        (FIGURES.replace("1000", "-1"), "line 2: must be a whole number from 0"),
        (FIGURES.replace("1000", "1e3"), "line 2: must be a whole number from 0"),
        (FIGURES.replace("north", "nord"), "line 2: its value is not among those of level 'state'"),
        (FIGURES.replace("state,south", "ward,south"), "line 3: its level is no axis of categories"),
        (FIGURES + "state,south,78\n", "line 5: repeats an earlier figure"),
        (FIGURES.replace("state,other,0\n", ""), "no figure for 1 of the 3 values"),
        (FIGURES + "sex,f,1\nsex,m,1076\n", "levels of several axes"),
        (
            FIGURES + "".join(f"county,{name},10\n" for name in [*COUNTIES, "other"]),
            "line 2: is not the sum of the figures of level 'county'",
        ),
    ],
)
def test_contradictory_figures_are_refused_with_one_message(tmp_path: Path, figures: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_of(tmp_path, figures)
    assert says in str(caught.value) and str(caught.value).count("tables.invariants") == 1
    assert "nord" not in str(caught.value)


def test_figures_are_part_of_the_digest_and_targets_are_not(tmp_path: Path) -> None:
    one, same = spec_of(tmp_path, FIGURES), spec_of(tmp_path, FIGURES, targets={"state": 5})
    other = spec_of(tmp_path, FIGURES.replace("77", "78"))
    assert one.digest == same.digest != other.digest
    with pytest.raises(SpecError, match=r"targets\.stat.*Did you mean 'state'"):
        spec_of(tmp_path, FIGURES, targets={"stat": 5})


def test_nested_figures_that_add_up_are_met_at_the_finest_level(tmp_path: Path) -> None:
    counties = dict.fromkeys([*COUNTIES, "other"], 10)
    text = "level,value,rows\nstate,north,30\nstate,south,40\nstate,other,10\n"
    made = spec_of(tmp_path, text + "".join(f"county,{name},{figure}\n" for name, figure in counties.items()))
    assert made.tables is not None and made.tables.invariants is not None
    assert made.tables.invariants.counts == "rows" and made.tables.invariants.of("county") == counties
