"""A file of queries is public, charged with the spec, and chooses what is measured; a wrong one is refused by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from declared_lists import below
from office import Office

import dphist_pipeline as dph
from dphist_pipeline.base.canonical_json import sha256
from dphist_pipeline.estimates.noisy import NestedCells
from dphist_pipeline.mechanisms import BadSetting, DomainRefused, build, settings_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.mistakes import SpecError

WARD = {"column": "ward", "values": ["a", "b", "c"], "other": True}
AGE = {"column": "age", "start": 0, "stop": 40, "width": 1, "below": True, "above": True, "other": True}
DAY = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-02-02"}
HEAD = "axis,from,to,weight\n"
SETTINGS = {"workload": "file", "queries": "codes/queries.csv"}
CANARY = "c4n4ry"


def spec_of(folder: Path, content: str, name: str = "codes/queries.csv", **fields: Any) -> ReleaseSpec:
    (folder / "codes").mkdir(exist_ok=True)
    (folder / "codes/queries.csv").write_text(content)
    asked = {"release": "wards", "source": "rows.parquet", "privacy_unit": "patient", "max_rows_per_unit": 2}
    asked |= {"neighbours": "add_remove", "epsilon": 1, "account": "health", "mechanism": "workload"}
    asked |= {"settings": {**SETTINGS, "queries": name}, "axes": [AGE, WARD, DAY], **fields}
    return ReleaseSpec.from_attributes(asked, folder, code_lists=below(folder / "codes"))


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ("age,20,30,2", (0, 21, 31, 2.0)),
        ("age, 20.0 ,,1", (0, 21, 42, 1.0)),
        ("age,,5,0.5", (0, 0, 6, 0.5)),
        ("age,,other,1", (0, 0, 43, 1.0)),
        ("ward,b,b,1", (1, 1, 2, 1.0)),
        ("ward,b,,1e-2", (1, 1, 3, 0.01)),
        ("ward,other,other,1", (1, 3, 4, 1.0)),
        ("day,2026-01-12,2026-01-26,1", (2, 1, 3, 1.0)),
    ],
)
def test_a_row_is_a_range_of_cells_along_its_axis(tmp_path: Path, row: str, cells: tuple[object, ...]) -> None:
    assert spec_of(tmp_path, f"{HEAD}{row}\n").plain_settings["queries"] == (cells,)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f"{HEAD}{CANARY},0,5,1\n", "line 2: its axis is no axis of this release"),
        (f"{HEAD}age,0,5,1\nage,{CANARY},5,1\n", "line 3: its `from` is no edge of a bin of axis 'age'"),
        (f"{HEAD}age,0,2.5,1\n", "line 2: its `to` is no edge of a bin of axis 'age'"),
        (f"{HEAD}age,nan,5,1\n", "line 2: its `from` is no edge"),
        (f"{HEAD}ward,a,{CANARY},1\n", "line 2: its `to` is no category of axis 'ward'"),
        (f"{HEAD}day,2026-01-06,,1\n", "line 2: its `from` is no first day of a bin of axis 'day'"),
        (f"{HEAD}age,5,5,1\n", "line 2: its range holds no cell"),
        (f"{HEAD}ward,c,a,1\n", "line 2: its range holds no cell"),
        *(
            (f"{HEAD}age,0,5,{weight}\n", "line 2: its weight must be a number from 0 to 1,000,000")
            for weight in ("-1", "", "nan", "inf", "1e7", "1e999", CANARY)
        ),
        (f"{HEAD}age,0,5,0\n", "holds no query with a weight above 0"),
        (f"axis,from,to\n{CANARY},0,5\n", "its column 'weight' is not there"),
        (HEAD, "holds no row, or is not a readable table"),
        (HEAD + "age,0,5,1\n" * 10_001, "has more than 10,000 queries"),
    ],
)
def test_a_wrong_file_is_refused_by_rule_and_line_alone(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_of(tmp_path, content)
    assert says in str(caught.value) and "attributes.settings.queries: " in str(caught.value)
    assert len(caught.value.problems) == 1 and CANARY not in str(caught.value)


@pytest.mark.parametrize("name", ["data/queries.csv", "codes/none.csv", "codes/link.csv", "/etc/passwd.csv"])
def test_a_file_that_nobody_declared_public_is_not_read(tmp_path: Path, name: str) -> None:
    for folder in ("data", "codes"):
        (tmp_path / folder).mkdir()
    (tmp_path / "data/queries.csv").write_text(f"{HEAD}{CANARY},0,5,1\n")
    (tmp_path / "codes/link.csv").symlink_to(tmp_path / "data/queries.csv")
    with pytest.raises(SpecError, match="is no file below a folder that the ledger declares public") as caught:
        spec_of(tmp_path, f"{HEAD}age,0,5,1\n", name)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"workload": "file"}, "`file` needs `queries`"),
        ({"queries": "codes/queries.csv"}, "needs `workload: file`, not ranges"),
        ({"workload": "file", "queries": [[0, 0, 5, 1]]}, "must be the path of a file such as codes/queries.csv"),
    ],
)
def test_the_file_and_its_word_go_together(tmp_path: Path, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(SpecError, match=r"attributes\.settings") as caught:
        spec_of(tmp_path, f"{HEAD}age,0,5,1\n", settings=settings)
    assert says in str(caught.value)


def test_what_a_file_says_is_in_the_digest_and_how_it_is_written_is_not(tmp_path: Path) -> None:
    rows = "age,20,30,2\nward,a,b,1\n"
    one = spec_of(tmp_path, HEAD + rows).digest
    same = [
        f"{HEAD}\n age ,20.0,30,2.0\nage,1,2,0\nward,a,b,1",
        "weight,to,from,axis,note\n2,30,20,age,x\n1,b,a,ward,\n",
    ]
    assert {spec_of(tmp_path, content).digest for content in same} == {one}
    changed = [rows.replace("30", "31"), rows.replace(",2\n", ",3\n"), rows.replace("a,b", "b,b"), rows.split("\n")[0]]
    assert len({spec_of(tmp_path, HEAD + content).digest for content in changed} | {one}) == 5
    # Specs that name no file keep the digest that they had before there were any.
    assert settings_of(build("workload", {})) == {"workload": "ranges", "length": 7}


def test_queries_get_less_noise_and_other_axes_are_asked_cell_by_cell() -> None:
    asked = tuple((0, low, low + 40, 1.0) for low in range(0, 60, 10))
    made = [
        dph.sanitize(np.zeros((100, 3), int), mechanism="workload", epsilon=1, sensitivity=1, **settings).unbiased
        for settings in ({"workload": "file", "queries": asked}, {"workload": "ranges"})
    ]
    variances = []
    for unbiased in made:
        assert isinstance(unbiased, NestedCells)
        wide = [[np.arange(low, high), np.array([1])] for _, low, high, _ in asked]
        variances.append(np.mean([unbiased.variance_of_sum(box) for box in wide]))
    assert variances[0] < 0.4 * variances[1]
    found = made[0]
    assert isinstance(found, NestedCells)
    assert len(found.lines[1].weights) == 1
    # Cells that no query tells apart are published, too.
    assert found.variances.max() < 200


@pytest.mark.parametrize("queries", [[(2, 0, 1, 1)], [(0, 3, 3, 1)], [(0, 0, 8, 1)]])
def test_queries_outside_of_a_grid_are_refused(queries: list[tuple[int, int, int, float]]) -> None:
    with pytest.raises(DomainRefused, match="no range of cells along an axis"):
        dph.sanitize(
            np.zeros((7, 3), int), mechanism="workload", epsilon=1, sensitivity=1, workload="file", queries=queries
        )
    with pytest.raises(BadSetting, match="where a spec names it"):
        build("workload", {"workload": "file", "queries": "codes/queries.csv"})


@pytest.mark.slow
def test_a_release_charges_for_its_queries_and_tells_them(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(office.folder)
    office.opened()
    (office.folder / "codes").mkdir(exist_ok=True)
    file = office.folder / "codes/queries.csv"
    file.write_text(f"{HEAD}ward,surgery,surgery,2\nage,,,1\n")
    office.write_spec(mechanism="workload", settings=SETTINGS)
    refused = office.release()
    assert refused.code == 1 and "settings.queries" in refused.err and "declares public" in refused.err
    assert office.run("ledger", "allow", "--code-lists", "codes", "--reason", "questions").code == 0
    office.released()
    audit = json.loads((office.published() / "audit.json").read_text())
    assert audit["settings"] == {"workload": "file", "length": 7, "queries": f"sha256:{sha256(audit['queries'])}"}
    assert [row[0] for row in audit["queries"]] == [1, 0] and audit["queries"][0][3] == 2
    assert pl.read_parquet(office.published() / "histogram.parquet").height == 21
    ran = office.run("forecast", "spec.yaml", "--repeat", "1", "--json")
    assert ran.json["expected"][0]["mechanism"] == "workload:workload=file,queries=codes/queries.csv"
    file.write_text(f"{HEAD}age,,,1\n")
    changed = office.release()
    assert changed.code == 1 and "settings" in changed.err and "--revise" in changed.err
