"""Which engine reads and counts, what a spec does without on an engine other than DuckDB, and where an engine is."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import model_validator

from dphist_pipeline.base.reading import OPTIONS
from dphist_pipeline.spec._upstream import UpstreamFields
from dphist_pipeline.spec.fields import spec_field
from dphist_pipeline.spec.mistakes import MistakesError
from dphist_pipeline.spec.sources import ISO

Engine = Literal["duckdb", "spark"]
# Fields that have their default with `engine: spark`: engines disagree on what they ask for, or it is not built.
NOT_SERVED = (
    *("source_sql", "derive", "keep", "period_format", "quality", "tables", "take"),
    *(name for name, field in OPTIONS.items() if not field.metadata["of_csv"]),
)


class EngineField(UpstreamFields):
    """The engine that reads and counts; where it is, an operator decides in the ledger."""

    engine: Annotated[
        Engine, spec_field(digest=False, description="duckdb, or spark where an operator allowed a server of it")
    ] = "duckdb"

    @model_validator(mode="after")
    def _engine_serves(self) -> Self:
        if self.engine == "duckdb":
            return self
        fields = type(self).model_fields
        defaults = {"period_format": ISO}  # the default, said aloud
        unserved = [
            name for name in NOT_SERVED if getattr(self, name) not in (fields[name].default, defaults.get(name, ...))
        ]
        unserved += [
            f"axes[{number}].format"
            for number, axis in enumerate(getattr(self, "axes", ()))
            if getattr(axis, "format", None) not in (None, ISO)
        ]
        if self.source_format != "parquet" or self.source.in_store:
            unserved.insert(0, "a `source` other than Parquet files in folders")
        if not unserved:
            return self
        names = ", ".join(name if " " in name else f"`{name}`" for name in unserved)
        raise MistakesError([(("engine",), f"`spark` does not serve {names}: remove that, or use `engine: duckdb`")])
