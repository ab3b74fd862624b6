"""Specs that would keep a machine busy for hours, or take all of its memory, before they are refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attacked import spec
from declared_lists import below

from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec import _yaml_rules
from dphist_pipeline.spec._invariants import FigureRow, FiguresSpec
from dphist_pipeline.spec.mistakes import SpecError

GROUPS = ["u", "u", "v", "v"]


@contextmanager
def soon(seconds: float) -> Iterator[None]:
    """Seconds of CPU are counted, so that a busy machine does not matter."""
    begun = time.process_time()
    yield
    assert time.process_time() - begun < seconds


def axis(number: int, levels: int) -> dict[str, Any]:
    named = {f"a{number}_l{level}": GROUPS for level in range(levels)}
    return {"column": f"a{number}", "values": ["k", "l", "m", "n"], "levels": named}


def test_every_four_of_two_hundred_levels_are_not_written_out_to_be_counted(tmp_path: Path):
    axes = [axis(number, 3) for number in range(50)]
    names = [[name] for one in axes for name in (one["column"], *one["levels"])]
    with soon(5), pytest.raises(SpecError, match="asks for 58,956,800 tables, and at most 5,000 are made"):
        spec(tmp_path, mechanism="tables", axes=axes, tables={"list": names, "all": 4})


def test_tables_of_all_levels_are_made_where_they_are_few(tmp_path: Path):
    axes = [axis(number, 1) for number in range(3)]
    names = [[name] for one in axes for name in (one["column"], *one["levels"])]
    made = spec(tmp_path, mechanism="tables", axes=axes, tables={"list": names, "all": 2})
    assert made.family is not None and len(made.family.names) == 6 + 12


def test_figures_of_fifty_thousand_places_are_compared_once_each(tmp_path: Path):
    places = [f"p{number}" for number in range(50_000)]
    made = spec(tmp_path, axes=[{"column": "place", "values": places}])
    rows = tuple(FigureRow((), line, ("place",), (name,), 1) for line, name in enumerate(places))
    figures = FiguresSpec(counts="persons", rows=rows)
    with soon(3):
        assert figures.finest(made.domain.axes).levels == ("place",)


def test_a_file_of_a_million_values_is_refused_while_it_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_yaml_rules, "MOST_NODES", 1_000)
    with pytest.raises(SpecError, match=r"line 1, column 2\d{3}: is one of more than 1,000 values"):
        _yaml_rules.read_yaml("[" + "a," * 1_100 + "\t}: never read")


NEARLY_A_MEGABYTE = {
    "numbers": "    - {column: a, edges: [" + ", ".join(map(str, range(125_000))) + "], wrong: 1}\n",
    "categories": "    - column: a\n      values:\n"
    + "".join(f"      - v{n}\n" for n in range(66_000))
    + "      wrong: 1\n",
    "no end": "    - {column: a, values: [" + ", ".join(f"v{n}" for n in range(120_000)) + "\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("axes", NEARLY_A_MEGABYTE.values(), ids=NEARLY_A_MEGABYTE)
def test_a_wrong_spec_of_a_megabyte_is_refused_soon(axes: str, tmp_path: Path):
    head = "type: dphist_pipeline.HistogramRelease\nattributes:\n  release: a\n  axes:\n"
    (tmp_path / "spec.yaml").write_text(head + axes)
    with soon(5), pytest.raises(SpecError):  # on a machine at rest within two, and not much more on a busy one
        ReleaseSpec.load(tmp_path / "spec.yaml")


def test_a_spec_of_ten_megabytes_is_refused_unread(tmp_path: Path):
    (tmp_path / "spec.yaml").write_bytes(b"type: dphist_pipeline.HistogramRelease\nattributes: [" + b"1,\n" * 3_400_000)
    with soon(0.3), pytest.raises(SpecError, match=r"is larger than 1 MB, .* long lists of categories go into files"):
        ReleaseSpec.load(tmp_path / "spec.yaml")


def test_a_file_of_queries_is_deeper_than_a_table(tmp_path: Path):
    """A spec names JSON or YAML where a table is asked for: nothing of it is parsed."""
    (tmp_path / "codes").mkdir()
    for name in ("queries.json", "queries.yaml", "queries"):
        (tmp_path / "codes" / name).write_text("[" * 100_000)
        with pytest.raises(SpecError, match=r"must be a \.csv or \.parquet file"):
            queries(tmp_path, f"codes/{name}")


@pytest.mark.parametrize("weight", ["1e400", "1e309", "NaN", "inf", "-1", "1_0", "١", "1e7", "0x1", "", "9" * 16])
def test_the_weight_of_a_query_is_no_number_that_counts(tmp_path: Path, weight: str):
    (tmp_path / "codes").mkdir()
    (tmp_path / "codes/q.csv").write_text(f"axis,from,to,weight\nage,0,10,{weight}\n")
    with pytest.raises(SpecError, match="line 2: its weight must be a number from 0 to 1,000,000"):
        queries(tmp_path, "codes/q.csv")


@pytest.mark.parametrize("end", ["NaN", "inf", "-inf", "1e400", "0x0", "2026-01-01"])
def test_the_end_of_a_query_is_no_edge(tmp_path: Path, end: str):
    (tmp_path / "codes").mkdir()
    (tmp_path / "codes/q.csv").write_text(f"axis,from,to,weight\nage,{end},10,1\n")
    with pytest.raises(SpecError, match="line 2: its `from` is no edge of a bin of axis 'age'"):
        queries(tmp_path, "codes/q.csv")


def queries(folder: Path, name: str) -> ReleaseSpec:
    settings = {"workload": "file", "queries": name}
    asked = {"release": "x", "source": "*.parquet", "privacy_unit": "person", "max_rows_per_unit": 1}
    asked |= {"neighbours": "add_remove", "epsilon": 1, "account": "health", "mechanism": "workload"}
    axes = [{"column": "age", "start": 0, "stop": 30, "width": 10}]
    return ReleaseSpec.from_attributes({**asked, "settings": settings, "axes": axes}, folder, code_lists=below(folder))
