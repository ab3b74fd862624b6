"""The spec of a release, with the mechanisms that are installed."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from dphist_pipeline import mechanisms
from dphist_pipeline.spec import sources
from dphist_pipeline.spec.declared_columns import inputs_of
from dphist_pipeline.spec.model import DeclaredRelease, Registry
from dphist_pipeline.spec.sources import EVERY_ROW


class ReleaseSpec(DeclaredRelease):
    """One release as declared, whose mechanism is one of this folder's, or of an installed package."""

    registry: ClassVar[Registry] = mechanisms

    @cached_property
    def built_mechanism(self) -> mechanisms.Mechanism:
        """The mechanism with its settings."""
        return mechanisms.build(self.mechanism, self.plain_settings)

    @property
    def declared_types(self) -> dict[str, str]:
        """The types of columns that are known without a source: a CSV file has only text. Empty for all else."""
        if self.source_format != "csv" or self.source_sql is not None:
            return {}
        units = () if self.privacy_unit == EVERY_ROW else self.privacy_unit.columns
        inputs = sorted(inputs_of(self.derive, self.keep))
        columns = (*units, self.period_column, *(axis.column for axis in self.read_axes), *inputs)
        types = {column: sources.TEXT[0] for column in columns if column is not None}
        return types | {one.column: one.kind for one in self.derive if one.column in types}
