"""Labels of axes are never null, tell every position apart, and are the same in Python and in SQL."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from dphist_pipeline.answering._macros import macro_files
from dphist_pipeline.answering.catalogue_rows import bin_rows
from dphist_pipeline.base.domain import Axis, BinnedAxis, Domain
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.parquet_tables import write_histogram
from dphist_pipeline.publishing.picture_sums import range_in_words
from dphist_pipeline.spec.axes import domain_of

AXES: dict[str, dict[str, Any]] = {
    "whole": {"column": "x", "edges": [0, 20, 60, 100], "above": True, "below": True, "other": True},
    "declared whole": {"column": "x", "edges": [-20, 0, 1, 60, 1000000], "above": True, "below": True, "whole": True},
    "whole and right": {"column": "x", "edges": [-20, -19, 0, 60], "closed": "right", "whole": True, "other": True},
    "decimal": {"column": "x", "start": 0, "stop": 1, "width": 0.1, "closed": "right", "above": True, "below": True},
    "large": {
        "column": "x",
        "edges": [-12.5, 0, 0.00001, 0.1, 0.3, 123456789.5, 1000000000000],
        "other": True,
    },
    "days": {"column": "x", "calendar": "week", "start": "2025-12-29", "stop": "2026-03-02", "other": True},
    "months": {"column": "x", "calendar": "month", "start": "2025-11-01", "stop": "2026-03-01", "other": True},
    "words": {"column": "x", "values": ["a", "b"], "other": True},
    "other": {"column": "x", "values": ["a", "other"], "other": True},
    "alike": {"column": "x", "values": ["01", "02", "03"], "labels": ["Lee", "Lee", ""]},
    "labelled": {"column": "x", "values": ["a", "b"], "labels": ["Alpha", "other"], "other": True},
}


def axis_of(described: dict[str, Any]) -> Axis:
    (axis,) = domain_of([described]).axes
    return axis


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("kind", AXES)
def test_labels_are_the_same_in_sql_and_in_python(kind: str, closed: bool, tmp_path: Any) -> None:
    axis = axis_of(AXES[kind])
    write_histogram(Estimate(Domain((axis,)), np.zeros(axis.size), ()), tmp_path / "cells.parquet")
    asked = f"SELECT {ReaderAxis(axis, closed).label_sql()} FROM '{tmp_path}/cells.parquet' AS t"
    with duckdb.connect() as connection:
        found = [label for (label,) in connection.execute(asked).fetchall()]
    assert found == ReaderAxis(axis, closed).labels and None not in found
    assert len({*found}) == axis.size


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("kind", ["whole", "declared whole", "whole and right", "decimal", "large", "days", "months"])
def test_macros_say_a_range_of_bins_as_tables_do(kind: str, closed: bool) -> None:
    axis = axis_of(AXES[kind])
    assert isinstance(axis, BinnedAxis)
    closed = closed and axis.closed == "left"  # as those of local collections
    ends = list(zip(*(bound.tolist() for bound in axis.bounds), strict=True))[: axis.size - axis.other]
    rows = bin_rows({"axes": [AXES[kind]], "model": "local" if closed else "central"})
    day = "strftime(DATE '1970-01-01' + TRY_CAST({} AS INTEGER), '%Y-%m-%d')"
    written = ", ".join(f"{day.format(f'bin_{end}')} AS {end}_end" for end in ("lower", "upper"))
    words = macro_files(None).from_string("{{ ends_in_words('low', 'high') }}").render()
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        found = connection.execute(
            f"WITH bins AS (SELECT *, {written} FROM rows) "
            f"SELECT low.position, high.position, {words} "
            "FROM bins AS low JOIN bins AS high ON low.position <= high.position WHERE high.bin_upper IS NOT NULL"
        ).fetchall()
    assert len(found) == len(ends) * (len(ends) + 1) / 2
    for low, high, said in found:
        both = ends[low][0], ends[high][1]
        assert said == ("all" if np.isinf(both).all() else range_in_words(axis, *both, closed)[0])


def test_open_ends_compare_and_other_is_last() -> None:
    axis = axis_of(AXES["whole"])
    found = {
        name: pa.array(values).to_pylist() for name, values in ReaderAxis(axis).values(np.arange(axis.size)).items()
    }
    assert [*found] == [*ReaderAxis(axis).columns] == ["x_label", "x_from", "x_to", "x_order"]
    assert found["x_label"] == ["below 0", "0 to under 20", "20 to under 60", "60 to under 100", "100 or more", "other"]
    assert found["x_from"] == [-np.inf, 0, 20, 60, 100, None] and found["x_to"] == [0, 20, 60, 100, np.inf, None]
    assert found["x_order"] == [0, 1, 2, 3, 4, 5]


def test_bins_of_whole_numbers_are_told_by_their_first_and_last_one() -> None:
    left, right = (ReaderAxis(axis_of(AXES[kind])).labels for kind in ("declared whole", "whole and right"))
    assert left == ["below -20", "-20 to -1", "0", "1 to 59", "60 to 999999", "1000000 or more"]
    assert right == ["-19", "-18 to 0", "1 to 60", "other"]


def test_other_is_told_from_a_category_of_that_name() -> None:
    assert ReaderAxis(axis_of(AXES["other"])).labels == ["a", "other", "other (none of the declared)"]
    assert ReaderAxis(axis_of(AXES["labelled"])).labels == ["Alpha", "other", "other (none of the declared)"]
    assert [*ReaderAxis(axis_of(AXES["words"])).columns] == ["x_label", "x_order"]
