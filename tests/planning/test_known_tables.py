"""Tables that public figures tell already: plans say that their error is 0, and that measuring them buys nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dphist_pipeline.cli.prepare.check import reliability_of, tables_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.sources import CodeListFolders
from dphist_pipeline.workbench.planning.family_forecast import advice_on_known, errors_of_tables, forecast_family
from dphist_pipeline.workbench.planning.plain_texts import plain_text

AXES: list[dict[str, Any]] = [
    {"column": "sex", "values": ["f", "m"]},
    {"column": "county", "values": ["a", "b", "c"], "other": True, "levels": {"state": ["n", "n", "s"]}},
]


def spec(folder: Path, tables: list[list[str]], others: int = 4, **fields: Any) -> ReleaseSpec:
    """A family with a public figure of each county."""
    (folder / "figures.csv").write_text(
        f"level,value,persons\ncounty,a,40\ncounty,b,50\ncounty,c,60\ncounty,other,{others}\n"
    )
    (folder / "rows.parquet").touch()
    made: dict[str, Any] = {
        **{"release": "family", "source": "rows.parquet", "privacy_unit": "patient", "max_rows_per_unit": 1},
        **{"neighbours": "add_remove", "epsilon": 1, "account": "health", "mechanism": "tables", "axes": AXES},
        "tables": {"list": tables, "invariants": "figures.csv"},
    }
    return ReleaseSpec.from_attributes(
        {**made, **fields}, folder, code_lists=lambda: CodeListFolders((folder,), lambda path: False)
    )


def test_a_known_table_has_no_error_and_is_advised_to_be_left_out(tmp_path: Path) -> None:
    planned = spec(tmp_path, [["county", "sex"], ["county"], ["state"]])
    errors = errors_of_tables(planned)
    assert errors["county"] == errors["state"] == 0 < errors["county_sex"]
    assert tables_of(planned)["errors_of_cells"]["county"] == 0
    assert list(reliability_of(planned)["reliability"]["poor_below"]) == ["county_sex"]
    assert advice_on_known(planned).startswith("Every cell of county, state is known from public figures")
    found = forecast_family(planned, [], {"county": 1, "county_sex": 20}, None, 1000)
    assert all(by["county"] == 0 for by in found.errors.values()) and found.facts()["known"] in found.notes()
    assert found.enough is not None and found.enough.errors["county_sex"] <= 20
    alone = spec(tmp_path, [["county", "sex"]])
    assert advice_on_known(alone) == "" and errors_of_tables(alone)["county_sex"] <= errors["county_sex"]


def test_figures_that_count_something_else_make_no_table_known(tmp_path: Path) -> None:
    planned = spec(tmp_path, [["county", "sex"], ["county"]], max_rows_per_unit=2)
    assert advice_on_known(planned) == "" and errors_of_tables(planned)["county"] > 0


@pytest.mark.parametrize("others", [0, 4])
def test_the_press_is_told_of_known_counts_and_of_sums_that_may_differ(tmp_path: Path, others: int) -> None:
    text = " ".join(plain_text(spec(tmp_path, [["county", "sex"], ["sex"]], others), "press", tmp_path).split())
    assert "to every count that was not public before" in text and "marked as known" in text
    assert ("sums differ by a few" in text) == (others == 0)
