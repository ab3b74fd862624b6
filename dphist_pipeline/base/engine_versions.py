"""Which versions of the engines the suite passed with, and which are installed here.

DuckDB decides what a record says and Polars which rows are kept, so the promise rests on both: with another minor
version of DuckDB nothing is read until an operator allows it, and with another one of Polars nothing at all. PyArrow
writes; `dphist doctor` reports its version.
"""

from __future__ import annotations

import re
from importlib import metadata

# A test of the architecture compares them with pyproject.toml and constraints.txt.
HELD = ("duckdb", "polars")  # what decides what a record says, and which rows are kept
SUITE = {"duckdb": "2.0", "polars": "2.1", "pyarrow": "26.0"}


def installed_minor(name: str) -> str:
    """The major and minor version of an installed package, such as `2.0`; empty where there is none."""
    try:
        match = re.match(r"\d+\.\d+", metadata.version(name))
    except metadata.PackageNotFoundError:
        return ""
    return match[0] if match else metadata.version(name)


def untested_engines() -> tuple[str, ...]:
    """The engines that would read and count here and are not the suite's, as decisions name them: `duckdb=2.1`."""
    minors = {name: installed_minor(name) for name in HELD}
    return tuple(f"{name}={minor}" for name, minor in minors.items() if minor != SUITE[name])
