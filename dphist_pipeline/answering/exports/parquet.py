"""A release as Parquet: every digit of every number, and in the file's metadata what the columns are."""

from __future__ import annotations

from pathlib import Path

from dphist_pipeline.answering.exports.rows import Exported
from dphist_pipeline.publishing.growing_tables import joined_tables, write_table


def write(exported: Exported, file: Path) -> None:
    """Writes the file."""
    audits = [one.audit for one in exported.publications]
    facts = {f"{name}s": ", ".join(str(audit[name]) for audit in audits) for name in ("period", "revision")}
    facts = {"release": str(exported.audit["release"]), **facts}
    write_table(joined_tables(list(exported.tables())), exported.columns, facts, file)
