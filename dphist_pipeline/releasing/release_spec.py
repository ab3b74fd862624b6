"""The spec of a release, with the mechanisms that are installed."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import ClassVar

from dphist_pipeline import mechanisms
from dphist_pipeline.ledger.decisions import SourceReading
from dphist_pipeline.spec import sources
from dphist_pipeline.spec.model import DeclaredRelease, Registry
from dphist_pipeline.spec.sources import EVERY_ROW, RecordSource, as_glob


class ReleaseSpec(DeclaredRelease):
    """One release as declared, whose mechanism is one of this folder's, or of an installed package."""

    registry: ClassVar[Registry] = mechanisms

    def build_mechanism(self) -> mechanisms.Mechanism:
        """The mechanism with its settings."""
        return mechanisms.build(self.mechanism, self.plain_settings)

    @property
    def reading(self) -> SourceReading:
        """What would be read and how, as an operator allows it; see `reading_of`."""
        return reading_of(self)

    @property
    def declared_types(self) -> dict[str, str]:
        """The types of columns that are known without a source: a CSV file has only text. Empty for all else."""
        if self.source_format != "csv" or self.source_sql is not None:
            return {}
        units = () if self.privacy_unit == EVERY_ROW else self.privacy_unit.columns
        columns = (*units, self.period_column, *(axis.column for axis in self.domain.axes))
        types = {column: sources.TEXT[0] for column in columns if column is not None}
        return types | {one.column: one.kind for one in self.derive if one.column in types}


def reading_of(records: RecordSource) -> SourceReading:
    """What would be read and how, as an operator allows it; the address as a spec or a command wrote it."""
    return SourceReading(
        address=str(records.source),
        folder=folder_of(records),
        format=records.source_format,
        table=records.source_table,
        csv_delimiter=records.csv_delimiter,
        csv_quote=records.csv_quote,
        csv_encoding=records.csv_encoding,
        hive=records.hive,
        decimal_comma=records.decimal_comma,
        thousands=records.thousands,
        unit=records.privacy_unit.columns,
        unit_normalise=records.unit_normalise,
        lines=records.source_format == "csv",
    )


def folder_of(records: RecordSource) -> str | None:
    """The folder that an address of files lies in, links followed; None for servers and object stores."""
    if not records.has_files:
        return None
    base = records.base
    plain = Path(base, as_glob(records.source.resolved)).parent
    # The base's own name may hold signs of a glob; only the address's count.
    folders = [folder for folder in (plain, *plain.parents) if not glob.has_magic(str(folder).removeprefix(str(base)))]
    return os.path.realpath(folders[0])
