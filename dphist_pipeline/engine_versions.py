"""Which versions of the engines the suite passed with, and which are installed here.

DuckDB decides what a record says, so the promise rests on it: another minor version reads nothing until an operator
allows it. Polars counts and PyArrow writes; of these two, `dphist doctor` tells.
"""

from __future__ import annotations

import re
from importlib import metadata

# A house test compares them with pyproject.toml and constraints.txt.
SUITE = {"duckdb": "2.0", "polars": "2.1", "pyarrow": "26.0"}


def installed_minor(name: str) -> str:
    """The major and minor version of an installed package, such as `2.0`; empty where there is none."""
    try:
        match = re.match(r"\d+\.\d+", metadata.version(name))
    except metadata.PackageNotFoundError:
        return ""
    return match[0] if match else metadata.version(name)


def untested() -> str | None:
    """The DuckDB that would read here, as a decision names it (`duckdb=2.1`); None for the suite's."""
    minor = installed_minor("duckdb")
    return None if minor == SUITE["duckdb"] else f"duckdb={minor}"
