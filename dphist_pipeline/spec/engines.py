"""Which engine reads and counts, what a spec does without on an engine other than DuckDB, and where an engine is."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import model_validator

from dphist_pipeline.spec._upstream import UpstreamFields
from dphist_pipeline.spec.fields import declared
from dphist_pipeline.spec.mistakes import FromEnvironment, MistakesError, shown
from dphist_pipeline.spec.sources import ISO, in_store

Engine = Literal["duckdb", "spark"]
SESSION = "session"  # instead of an address: the session of Spark that is active in the program that runs a release
USUAL_PORT = "15002"
# Fields that have their default with `engine: spark`: engines disagree on what they ask for, or it is not built.
NOT_SERVED = (
    *("source_sql", "source_table", "hive", "decimal_comma", "unit_normalise", "period_format", "quality", "tables"),
)

_ADDRESS = re.compile(
    r"sc://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::([0-9]{1,5}))?(/(?:;[A-Za-z0-9_-]+=[!-:<-~]*)*)?", re.ASCII
)


class EngineField(UpstreamFields):
    """The engine that reads and counts; where it is, an operator decides in the ledger."""

    engine: Annotated[
        Engine, declared(digest=False, description="duckdb, or spark where an operator allowed a server of it")
    ] = "duckdb"

    @model_validator(mode="after")
    def _engine_serves(self) -> Self:
        if self.engine == "duckdb":
            return self
        fields = type(self).model_fields
        said = {"period_format": ISO}  # the default, said aloud
        unserved = [
            name for name in NOT_SERVED if getattr(self, name) not in (fields[name].default, said.get(name, ...))
        ]
        unserved += [
            f"axes[{number}].format" for number, axis in enumerate(getattr(self, "axes", ())) if _has_format(axis)
        ]
        if self.source_format != "parquet" or in_store(self.source):
            unserved.insert(0, "a `source` other than Parquet files in folders")
        if not unserved:
            return self
        told = ", ".join(name if " " in name else f"`{name}`" for name in unserved)
        raise MistakesError([(("engine",), f"`spark` does not serve {told}: remove that, or use `engine: duckdb`")])


def _has_format(axis: object) -> bool:
    return getattr(axis, "format", None) is not None


def server_of(address: str) -> str:
    """The server that an address names, without its settings: `sc://host:port` or `session`.

    Args:
        address: resolved; of a literal one, settings are refused that hold a secret.

    Raises:
        ValueError: for anything else.
    """
    if address == SESSION:
        return SESSION
    found, secret = _ADDRESS.fullmatch(address), isinstance(address, FromEnvironment)
    if found is None or len(address) > 4000:
        given = "what the variable holds" if secret else shown(address)
        raise ValueError(f"must be a server of Spark Connect, as sc://host:15002, or `session`, not {given}")
    if not secret and ";token=" in (found[3] or "").lower():
        raise ValueError("holds a token, which would stand in the ledger; set a variable, and write {{ env.NAME }}")
    return f"sc://{found[1].lower()}:{found[2] or USUAL_PORT}"
