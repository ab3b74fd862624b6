"""The value columns of every published table, each described once.

Parquet files, digests, the catalogue, Dagster, exports, the reference and the reserved names of a spec
read this; the columns of axes are those of the spec. A new column needs its entry here and its values in
`parquet_tables.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from dphist_pipeline.base.languages.texts import mark_text


@dataclass(frozen=True)
class ValueColumn:
    """A column that every published histogram has.

    Attributes:
        name: in the file; no axis can publish a column of that name.
        kind: the type, in Arrow's words.
        meaning: in Dagster's table schema, in the central model.
        in_views: the comment in the catalogue, and the meaning in exported files and `latest/`.
        local_meaning: `meaning` in the local model; empty where it is no other.
        null: when the column is null; empty where it never is.
        since: the first version whose files have the column. In a catalogue, the cells of older files have null there.
        is_digested: whether the ledger's digest of values covers the column: never one of a later version, whose values
            older files lack.
        is_summed: whether the macros that give sums of cells read the column.
    """

    name: str
    kind: str
    meaning: str
    in_views: str
    local_meaning: str = ""
    null: str = ""
    since: str = "0.1.0"
    is_digested: bool = False
    is_summed: bool = False


_UNPAID = "the mechanism paid for no noisy cells"
VALUE_COLUMNS = (
    ValueColumn(
        "estimate",
        "double",
        "the released count: the one to use",
        mark_text("estimated number of (bounded) rows in the cell, not cut off at 0"),
        is_digested=True,
        is_summed=True,
    ),
    ValueColumn(
        "unbiased_estimate",
        "double",
        "the exact count plus noise, or a linear estimate of it, where the mechanism paid for such",
        mark_text("the number that the interval belongs to: the noisy count itself, or a linear estimate of it"),
        "from reports alone, right on average: neither rounded nor made consistent",
        null=_UNPAID,
        is_digested=True,
        is_summed=True,
    ),
    ValueColumn(
        "ci_lower",
        "double",
        "95 % interval of the true bounded count, lower end",
        mark_text("lower end of the 95 % interval of the cell, not cut off at 0; for sums ask a macro"),
        "95 % interval of how many of the reported values lie there, lower end",
        null=_UNPAID,
    ),
    ValueColumn(
        "ci_upper",
        "double",
        "95 % interval of the true bounded count, upper end",
        mark_text("upper end of the 95 % interval of the cell; for sums ask a macro"),
        "95 % interval of how many of the reported values lie there, upper end",
        null=_UNPAID,
    ),
    ValueColumn(
        "group_id",
        "int64",
        "cells that were measured together, where the mechanism makes groups",
        "cells with the same number share one estimate; null without groups",
        null="the mechanism makes no groups",
        is_digested=True,
        is_summed=True,
    ),
)
KINDS_OF_VALUES = {column.name: column.kind for column in VALUE_COLUMNS}
