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


SPLIT = {"north": (600, 400), "south": (70, 7), "other": (0, 0)}
BY_SEX = "state,sex,persons\n" + "".join(
    f"{state},{sex},{figure}\n" for state, pair in SPLIT.items() for sex, figure in zip("fm", pair, strict=True)
)


def spec_of(folder: Path, figures: str | list[str], **tables: Any) -> ReleaseSpec:
    names = ["figures.csv"] if isinstance(figures, str) else [f"figures_{n}.csv" for n in range(len(figures))]
    for name, text in zip(names, [figures] if isinstance(figures, str) else figures, strict=True):
        (folder / name).write_text(text)
    (folder / "rows.parquet").touch()
    fields = {"source": "rows.parquet", "privacy_unit": "patient", "max_rows_per_unit": 2, "neighbours": "add_remove"}
    asked = {**FAMILY["tables"], "invariants": names[0] if isinstance(figures, str) else names, **tables}
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
        (FIGURES.replace("state,south", "ward,south"), "line 3: its level is no axis of categories"),
        (FIGURES + "state,south,78\n", "line 5: repeats an earlier figure"),
        (FIGURES.replace("state,other,0\n", ""), "no figure for 1 of the 3 values"),
        (
            FIGURES + "sex,f,1\nsex,m,1076\n",
            "give those by ('sex', 'state'), of which the others are sums, or keep one",
        ),
        (
            "level,value,persons\nstate,north,31\nstate,south,40\nstate,other,10\n"
            + "".join(f"county,{name},10\n" for name in [*COUNTIES, "other"]),
            "line 2: is not the sum of the figures of level 'county'",
        ),
    ],
)
def test_contradictory_figures_are_refused_with_one_message(tmp_path: Path, figures: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_of(tmp_path, figures)
    assert says in str(caught.value) and str(caught.value).count("tables.invariants") == 1
    assert "nord" not in str(caught.value)


def problems_of(folder: Path, figures: str | list[str]) -> list[str]:
    with pytest.raises(SpecError) as caught:
        spec_of(folder, figures)
    return [
        line.strip().removeprefix("attributes.")
        for line in str(caught.value).splitlines()
        if "tables.invariants" in line
    ]


def test_every_mistake_of_a_file_over_two_axes_is_named_at_once(tmp_path: Path) -> None:
    """Values of the file are not repeated, declared ones are told."""
    wrong = BY_SEX.replace("north,m", "nord,m").replace("south,m,7", "south,m,-7") + "south,f,1\n"
    assert problems_of(tmp_path, wrong) == [
        "tables.invariants: has no figure for 1 of the 6 combinations of 'state', 'sex' (`other` is one, too), "
        "such as 'north' with 'm'",
        "tables.invariants: line 3: its value is not among those of level 'state'",
        "tables.invariants: line 5: must be a whole number from 0 to 10^12, without signs or commas",
        "tables.invariants: line 8: repeats an earlier figure; keep one of them",
    ]
    assert problems_of(tmp_path, BY_SEX.replace("state,sex,", "land,sexes,")) == [
        "tables.invariants: line 1: its column 1 is no axis of categories, or level of one, in `tables`",
        "tables.invariants: line 1: its column 2 is no axis of categories, or level of one, in `tables`",
    ]
    (problem,) = problems_of(tmp_path, "state,county,persons\nnorth,a,1\n")
    assert "line 1: its column 2 is a level of the same axis as an earlier one; keep the finer one" in problem
    (problem,) = problems_of(tmp_path, "state,sex,people\nnorth,f,1\n")
    assert "its columns must be axes of the spec, or levels of them, and at last `persons` or `rows`" in problem


def test_figures_in_several_files_must_be_sums_of_the_finest(tmp_path: Path) -> None:
    by_state = "state,persons\nnorth,1000\nsouth,77\nother,0\n"
    made = spec_of(tmp_path, [by_state, BY_SEX])
    assert made.tables is not None and made.tables.invariants is not None
    finest = made.tables.invariants.finest(made.domain.axes)
    assert finest.levels == ("state", "sex") and finest.rows.tolist() == [list(pair) for pair in SPLIT.values()]
    wrong = by_state.replace("1000", "1001").replace("77", "76")
    assert problems_of(tmp_path, [BY_SEX, wrong, "sex,persons\nf,670\nm,400\n"]) == [
        f"tables.invariants[{file}]: line {line}: is not the sum of the figures by 'state', 'sex' in it"
        for file, line in ((1, 2), (1, 3), (2, 3))
    ]
    by_age = "sex,persons\nf,670\nm,407\n"
    (problem,) = problems_of(tmp_path, [by_state, by_age])
    assert "figures by ('state') and ('sex'), and by none that holds all of them" in problem
    (problem,) = problems_of(tmp_path, [BY_SEX, by_state.replace("persons", "rows")])
    assert "must all count `persons`, or all count `rows`" in problem
    (tmp_path / "again").mkdir()
    assert len(problems_of(tmp_path, [by_state.replace("persons", "people"), "state\n", BY_SEX])) == 2


def test_a_file_by_one_level_says_the_same_in_both_layouts(tmp_path: Path) -> None:
    assert (
        spec_of(tmp_path, FIGURES).digest
        == spec_of(tmp_path, FIGURES.replace("level,value", "state").replace("\nstate,", "\n")).digest
    )


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
    finest = made.tables.invariants.finest(made.domain.axes)
    assert made.tables.invariants.counts == "rows" and finest.levels == ("county",)
    assert dict(zip(finest.values[0], finest.rows.tolist(), strict=True)) == counties
