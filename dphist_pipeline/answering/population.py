"""Reads a public population from a file, for rates."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from dphist_pipeline.estimates.chosen_cells import QuestionRefused


def read_population(file: Path) -> pa.Table:
    """The rows of a public file, for `Publication.rate`.

    Args:
        file: CSV with a header, whose columns stay texts (so `01` stays `01`), or Parquet.

    Raises:
        QuestionRefused: the file is of another kind or cannot be read.
    """
    endings = {".csv": "read_csv($file, all_varchar := true, header := true)", ".parquet": "read_parquet($file)"}
    if file.suffix.lower() not in endings:
        raise QuestionRefused("", f"the population {file.name} must be a file that ends in .csv or .parquet")
    try:
        with duckdb.connect() as connection:
            query = f"FROM {endings[file.suffix.lower()]}"
            return connection.sql(query, params={"file": str(file)}).to_arrow_table()
    except duckdb.Error as error:
        problem = str(error).splitlines()[0]
    raise QuestionRefused("", f"the population {file.name} cannot be read: {problem}")
