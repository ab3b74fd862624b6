"""Values of contributors in a file, on their own side: whatever is no number is a value that lies in no interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import DphistError, did_you_mean

ENDINGS = (".parquet", ".csv", ".csv.gz", ".csv.zst")


class ValuesUnreadable(DphistError):
    """A file that values cannot be read from; what it holds is in no message."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"the values at {path} {problem}")


def read_values(path: Path, column: str, contributor: str) -> tuple[list[str], NDArray[np.float64]]:
    """Who has which value, a row each; rows without a contributor are left out.

    Args:
        path: Parquet or CSV with a line of names.
        column: of the values.
        contributor: the column that says whose they are, or `row` where every row is another contributor, whom
            the file's name and the row's number name in the record.

    Raises:
        ValuesUnreadable: the file as a file, a column that it has not, or one of a type without numbers; never because
            of a value, but for quotation marks that break a CSV file.
    """
    rows = _rows(path, [column] if contributor == "row" else [column, contributor])
    values = rows.get_column("value").to_numpy()
    if contributor == "row":
        # Of this file: the rows of another one are other people, and no id looks like this.
        return [f"row {number} of {path.name}" for number in range(len(rows))], values
    owners = rows.get_column("contributor")
    known = (owners != "").fill_null(False)
    return owners.filter(known).to_list(), values[known.to_numpy()]


def _rows(path: Path, columns: list[str]) -> Any:
    """The columns `value`, a double or nan, and `contributor`, text or null, of the two that are named."""
    import polars as pl

    if not path.name.casefold().endswith(ENDINGS):
        raise ValuesUnreadable(path, f"must end in one of {', '.join(ENDINGS)}")
    tabular = path.suffix.casefold() == ".parquet"
    try:
        frame = (
            pl.scan_parquet(path, glob=False)
            if tabular
            else pl.scan_csv(path, glob=False, infer_schema=False, truncate_ragged_lines=True, encoding="utf8-lossy")
        )
        kinds = dict(frame.collect_schema())
        problem = _misfit(columns, kinds, tabular)
        if len(columns) == 1 and "row" in kinds:
            problem = "have a column 'row', so that `row` does not say whose they are; give it another name"
        if problem is None:
            wanted = [_number(columns[0], kinds), *(_name(name, kinds) for name in columns[1:])]
            return frame.select(wanted).collect()
    except FileNotFoundError:
        problem = "are not there; check the path"
    except (pl.exceptions.PolarsError, OSError) as error:
        whole = "Parquet file" if tabular else "CSV file, with quotation marks in pairs; or give Parquet"
        problem = (
            f"cannot be read ({type(error).__name__}; its message is withheld, because it may hold values). Look "
            f"whether this is a whole {whole}"
        )
    raise ValuesUnreadable(path, problem)


def _misfit(columns: list[str], kinds: Mapping[str, Any], tabular: bool) -> str | None:
    """What is wrong with the columns of a file, by their names and types."""
    import polars as pl

    missing = next((name for name in columns if name not in kinds), None)
    if missing is not None:
        # Of a CSV file without a line of names, the first line is somebody's.
        hint = did_you_mean(missing, list(kinds)) if tabular else "The first line of the file must hold the names."
        return f"have no column {missing!r}. {hint}"
    fits = {
        name: kind.is_numeric() or kind.is_(pl.Boolean) or kind.is_(pl.Null) or _is_text(kind)
        for name, kind in kinds.items()
    }
    misfits = (name for name in columns if not fits[name])
    return next(
        (f"have a column {name!r} of type {kinds[name].base_type()}; give numbers, or text" for name in misfits), None
    )


def _number(name: str, kinds: Mapping[str, Any]) -> Any:
    import polars as pl

    told = pl.col(name).cast(pl.String, strict=False) if _is_text(kinds[name]) else pl.col(name)
    return told.cast(pl.Float64, strict=False).fill_null(math.nan).alias("value")


def _name(name: str, kinds: Mapping[str, Any]) -> Any:
    """Contributors by name: 1.0 is who is called 1 in another file, or two draws would be made for one person."""
    import polars as pl

    told = pl.col(name)
    if kinds[name].is_float():
        whole = told.cast(pl.Int64, strict=False)
        text = pl.when(whole.cast(pl.Float64) == told).then(whole.cast(pl.String)).otherwise(told.cast(pl.String))
        return pl.when(told.is_nan()).then(None).otherwise(text).alias("contributor")
    return told.cast(pl.String, strict=False).alias("contributor")


def _is_text(kind: Any) -> bool:
    import polars as pl

    return kind.base_type() in (pl.String, pl.Categorical, pl.Enum)
