"""Files of public counts: what is read, and one clear refusal for everything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from error_codes import coded

from dphist_pipeline.errors import Refused
from dphist_pipeline.workbench.evaluation.public_counts import read_counts
from dphist_pipeline.workbench.evaluation.synthetic_sets import synthetic_counts


def parquet(folder: Path, columns: dict[str, object]) -> str:
    pq.write_table(pa.table(columns), folder / "counts.parquet")
    return str(folder / "counts.parquet")


def csv(folder: Path, text: str) -> str:
    (folder / "counts.csv").write_text(text)
    return str(folder / "counts.csv")


def test_a_line_of_bins_is_read_in_any_order(tmp_path):
    assert read_counts(parquet(tmp_path, {"count": [7, 5], "bin": [3, 1]})).tolist() == [0, 5, 0, 7]
    assert read_counts(csv(tmp_path, "bin,count\n1,5\n3,7\n")).tolist() == [0, 5, 0, 7]


def test_a_cube_is_read_from_its_cells_that_are_not_empty(tmp_path):
    source = parquet(tmp_path, {"x": [0, 1], "y": [2, 0], "count": pa.array([4, 9], pa.uint8())})
    assert read_counts(source).tolist() == [[0, 0, 4], [9, 0, 0]]
    assert read_counts(source, (2, 4)).shape == (2, 4)


def test_a_folder_that_looks_like_a_column_adds_none(tmp_path):
    folder = tmp_path / "year=2020"
    folder.mkdir()
    assert read_counts(parquet(folder, {"bin": [0], "count": [3]})).tolist() == [3]


def test_synthetic_counts_have_names():
    assert np.array_equal(read_counts("synthetic:waitakere"), synthetic_counts("waitakere"))
    assert np.array_equal(read_counts("synthetic:waitakere", (7725,)), synthetic_counts("waitakere"))
    with pytest.raises(Refused, check=coded("counts_refused"), match="leave --shape out"):
        read_counts("synthetic:waitakere", (7726,))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"bin": [0]}, "needs a column `count`"),
        ({"count": [1]}, "needs a column `count` and one column for each"),
        ({f"axis_{number}": [0] for number in range(17)} | {"count": [1]}, "1 to 16 axes"),
        ({"bin": [0], "count": [-1]}, "'count' holds numbers below 0"),
        ({"bin": [-1], "count": [1]}, "'bin' holds numbers below 0"),
        ({"bin": [0], "count": [1.5]}, "'count' must hold whole numbers, not double"),
        ({"bin": ["a"], "count": [1]}, "'bin' must hold whole numbers, not string"),
        ({"bin": [0, None], "count": [1, 2]}, "'bin' has gaps"),
        ({"bin": [0, 0], "count": [1, 2]}, "two rows for one cell"),
        ({"bin": pa.array([], pa.int64()), "count": pa.array([], pa.int64())}, "has no rows"),
        ({"bin": [20_000_000], "count": [1]}, "20,000,001 = 20,000,001 cells are too many"),
        ({"x": [9_999], "y": [9_999], "count": [1]}, "10,000 × 10,000 = 100,000,000 cells are too many"),
        ({"bin": [2**62], "count": [1]}, r"above 2\^52"),
        ({"bin": [0], "count": pa.array([2**63], pa.uint64())}, r"above 2\^52"),
        ({"bin": [0, 1, 2], "count": [2**52, 2**52, 2**52]}, r"add up to more than 2\^52"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,  # columns print their place in memory
)
def test_a_table_of_anything_else_is_refused(tmp_path, columns, says):
    with pytest.raises(Refused, check=coded("counts_refused"), match=says):
        read_counts(parquet(tmp_path, columns))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot be read as CSV"),
        ("bin,count\n0,1,2\n", "cannot be read as CSV"),
        ("bin,count\n0,many\n", "whole numbers, not string"),
        ("bin,count\n", "has no rows"),
        ("count,count\n1,2\n", "two columns of one name"),
        ("\0\0\0", "cannot be read as CSV|needs a column"),
    ],
    ids=repr,
)
def test_a_csv_of_anything_else_is_refused(tmp_path, text, says):
    with pytest.raises(Refused, check=coded("counts_refused"), match=says):
        read_counts(csv(tmp_path, text))


def test_what_is_no_such_file_is_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(Refused, check=coded("counts_refused"), match="cannot be read as PARQUET"):
        read_counts(str(tmp_path / "torn.parquet"))
    for name in ("folder.csv", "missing.parquet"):
        with pytest.raises(Refused, check=coded("counts_refused"), match="no such file"):
            read_counts(str(tmp_path / name))
    with pytest.raises(Refused, check=coded("counts_refused"), match=r"neither `\.parquet` nor `\.csv`"):
        read_counts("counts.xlsx")


def test_a_shape_that_does_not_hold_the_cells_is_refused(tmp_path):
    source = parquet(tmp_path, {"x": [4], "y": [0], "count": [1]})
    with pytest.raises(Refused, check=coded("counts_refused"), match="axis 'x' has a cell 4; --shape ends it before 4"):
        read_counts(source, (4, 4))
    with pytest.raises(Refused, check=coded("counts_refused"), match=r"has 2 axes \(x, y\); --shape names 1"):
        read_counts(source, (5,))
