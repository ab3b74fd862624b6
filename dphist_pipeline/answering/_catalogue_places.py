"""Where the objects of a catalogue lie: what users ask, and apart from it what only views and macros read.

A macro finds both from the name of the release that it is asked for, since DuckDB looks up names in a macro where the
question is asked: `r.weekly` leads to `r.dph_releases` and `r.internals.dph_bins`. A view looks in its own catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass

from dphist_pipeline.base.sql_files import identifier, schema_prefix

INTERNALS = "internals"
FOR_USERS = ("dph_releases", "dph_charges", "dph_better")  # the tables that the documentation names
CELLS = "dph_cells_"  # the table of a release, before its name
FIGURES = "dph_figures_"  # the table with the figures of a release, before its name
ASKED = "dph_asked_"  # the view that macros read, before the name of the release


@dataclass(frozen=True)
class Places:
    """The schemas of a catalogue.

    `schema` holds everything, in somebody's own database; None for a catalogue's own file, or for memory, where
    `INTERNALS` lies beside `main`.
    """

    schema: str | None = None

    @property
    def users(self) -> str:
        """The prefix of the names that users ask: views of releases, macros and some tables."""
        return schema_prefix(self.schema)

    @property
    def internals_schema(self) -> str:
        """The schema of what only views and macros read."""
        return INTERNALS if self.schema is None else self.schema

    @property
    def internals(self) -> str:
        """The prefix of the names that only views and macros read."""
        return f"{INTERNALS}." if self.schema is None else self.users

    def table(self, name: str) -> str:
        """One of the catalogue's own tables, with its schema."""
        return f"{self.users if name in FOR_USERS else self.internals}{name}"

    def cells(self, release: str) -> str:
        """The table of a release, with its schema."""
        return self.internals + identifier(CELLS + release)

    def macro_view(self, release: str) -> str:
        """The view of a release that macros read, with its schema."""
        return self.internals + identifier(ASKED + release)

    def beside_release(self, name: str) -> str:
        """SQL for the last arguments of `regexp_replace`, with which the name of a release becomes that of a table."""
        if self.schema is not None or name in FOR_USERS:
            return f"'[^.]*$', '{name}'"
        return rf"""'(?i)(^|\.)("?main"?\.)?[^.]*$', '\1{INTERNALS}.{name}'"""
