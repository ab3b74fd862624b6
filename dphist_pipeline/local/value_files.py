"""Values of contributors in a file, on the contributors' side: anything that is no number lies in no interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dphist_pipeline.base.guarded_polars import guarded_polars
from dphist_pipeline.errors import Refused, did_you_mean

ENDINGS = (".parquet", ".csv", ".csv.gz", ".csv.zst")
TEXTS = (pl.String, pl.Categorical, pl.Enum)


def values_unreadable(path: Path, problem: str) -> Refused:
    """A file that values cannot be read from; its content is in no message."""
    return Refused(f"the values at {path} {problem}", code="values_unreadable")


def read_values(path: Path, column: str, contributor: str) -> tuple[list[str], NDArray[np.float64]]:
    """The contributor and the value of each row; rows without a contributor are left out.

    Args:
        path: Parquet or CSV with a line of names.
        contributor: the column that names the contributors; or `row` where every row is another contributor, who is
            named in the record by the file's name and the row's number.

    Raises:
        Refused: the file is damaged, or has no such column, or one of a type without numbers. No value
            raises it, except quotation marks that break a CSV file.
    """
    rows = _rows(path, [column] if contributor == "row" else [column, contributor])
    values = rows.get_column("value").to_numpy()
    if contributor == "row":
        # With the file's name, because rows of another file are other people; no id looks like this.
        return [f"row {number} of {path.name}" for number in range(len(rows))], values
    owners = rows.get_column("contributor")
    has_owner = (owners != "").fill_null(False)
    return owners.filter(has_owner).to_list(), values[has_owner.to_numpy()]


def _rows(path: Path, columns: list[str]) -> pl.DataFrame:
    """The columns `value`, a double or nan, and `contributor`, text or null, from the columns with these names."""
    if not path.name.casefold().endswith(ENDINGS):
        raise values_unreadable(path, f"must end in one of {', '.join(ENDINGS)}")
    tabular = path.suffix.casefold() == ".parquet"
    try:
        if tabular:
            frame = pl.scan_parquet(path, glob=False)
        else:
            frame = pl.scan_csv(path, glob=False, infer_schema=False, truncate_ragged_lines=True, encoding="utf8-lossy")
        kinds = frame.collect_schema()
        problem = _problem(columns, kinds, tabular)
        if problem is None:
            chosen = frame.select(_number(columns[0], kinds), *(_name(name, kinds) for name in columns[1:]))
            with guarded_polars():
                return chosen.collect()
    except FileNotFoundError:
        problem = "are not there; check the path"
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        whole = "Parquet file" if tabular else "CSV file, with quotation marks in pairs; or give Parquet"
        problem = (
            f"cannot be read ({type(error).__name__}; its message is withheld, because it may hold values). Look "
            f"whether this is a whole {whole}"
        )
    raise values_unreadable(path, problem)


def _problem(columns: list[str], kinds: Mapping[str, pl.DataType], tabular: bool) -> str | None:
    """What is wrong with the columns of a file, by their names and types."""
    for name in columns:
        if name not in kinds:
            # If a CSV file has no line of names, its first line holds somebody's value.
            hint = did_you_mean(name, list(kinds)) if tabular else "The first line of the file must hold the names."
            return f"have no column {name!r}. {hint}"
        kind = kinds[name].base_type()
        if not (kind.is_numeric() or kind in (pl.Boolean, pl.Null, *TEXTS)):
            return f"have a column {name!r} of type {kind}; give numbers, or text"
    if len(columns) == 1 and "row" in kinds:
        return "have a column 'row', so that `row` does not say whose they are; give it another name"
    return None


def _number(name: str, kinds: Mapping[str, pl.DataType]) -> pl.Expr:
    plain = pl.col(name).cast(pl.String, strict=False) if kinds[name].base_type() in TEXTS else pl.col(name)
    return plain.cast(pl.Float64, strict=False).fill_null(math.nan).alias("value")


def _name(name: str, kinds: Mapping[str, pl.DataType]) -> pl.Expr:
    """Names of contributors as text: 1.0 becomes 1, as in other files, or one person would answer twice."""
    plain = pl.col(name)
    if kinds[name].is_float():
        whole = plain.cast(pl.Int64, strict=False)
        text = pl.when(whole.cast(pl.Float64) == plain).then(whole.cast(pl.String)).otherwise(plain.cast(pl.String))
        return pl.when(plain.is_nan()).then(None).otherwise(text).alias("contributor")
    return plain.cast(pl.String, strict=False).alias("contributor")
