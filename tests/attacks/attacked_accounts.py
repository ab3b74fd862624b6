"""What the operator of an attacked office decided, by account: the fields of specs that decisions fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Reading(NamedTuple):
    """How an operator decided that records are read, as a plan says it."""

    format: str
    unit: tuple[str, ...]
    forms: tuple[str, ...]
    quote: str
    delimiter: str
    decimal_comma: bool
    file: str


class Account(NamedTuple):
    """What operators decided for an account.

    Attributes:
        fields: of specs, which that fixes.
        reading: what a plan then says.
        total: of epsilon.
        options: with which it is opened, beside unit, relation and source.
    """

    fields: dict[str, Any]
    reading: Reading
    total: str = "300"
    options: Sequence[str] = ()


HEALTH = Account(
    {
        "account": "health",
        "source": "data/health.parquet",
        "privacy_unit": "patient",
        "neighbours": "add_remove",
    },
    Reading("parquet", ("patient",), (), "", ",", False, "health.parquet"),
    "100000",
)
CLINIC = Account(
    {
        "account": "clinic",
        "source": "data/clinic.csv",
        "csv_quote": '"',
        "unit_normalise": ["trim", "lower"],
        "privacy_unit": "person",
        "neighbours": "substitute",
    },
    Reading("csv", ("person",), ("trim", "lower"), '"', ",", False, "clinic.csv"),
    options=["--csv-quote", '"', "--unit-normalise", "trim,lower"],
)
MONTHLY = Account(
    {
        "account": "monthly",
        "source": "data/{year}/{month}.parquet",
        "privacy_unit": "patient",
        "neighbours": "add_remove",
        "period": "month",
        "period_column": "day",
        "period_format": "iso",
    },
    Reading("parquet", ("patient",), (), "", ",", False, "[0-9][0-9][0-9][0-9]/[0-9][0-9].parquet"),
)
PAIRS = Account(
    {
        "account": "pairs",
        "source": "data/pairs/*.csv",
        "csv_quote": '"',
        "csv_delimiter": ";",
        "decimal_comma": True,
        "privacy_unit": ["site", "patient"],
        "neighbours": "substitute",
    },
    Reading("csv", ("site", "patient"), (), '"', ";", True, "pairs/*.csv"),
    options=["--csv-quote", '"', "--csv-delimiter", ";", "--decimal-comma"],
)
ROWS = Account(
    {"account": "everybody", "source": "data/rows.parquet", "privacy_unit": "row", "neighbours": "add_remove"},
    # A unit has no columns.
    Reading("parquet", ("row",), (), "", ",", False, "rows.parquet"),
)
ACCOUNTS = [HEALTH, CLINIC, MONTHLY, PAIRS, ROWS]
