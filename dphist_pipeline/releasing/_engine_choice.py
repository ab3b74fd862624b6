"""Which engine counts a release, and where: as an operator decided, never as a spec says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.errors import Halted
from dphist_pipeline.ledger.decisions import Decision
from dphist_pipeline.ledger.ledger import Charge, Ledger
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.loading import resolve_templates
from dphist_pipeline.spec.sources import TEXT, server_of, undeclared_dates


def engine_refused(address: str, problem: str) -> Halted:
    """An engine whose address cannot be used as it was decided."""
    return Halted(f"engine spark at {address}: {problem}. Nothing was read or spent.", code="engine_refused")


def allowed_server(address: str) -> dict[str, Any]:
    """What allows a server of Spark: its address as written, and the server that this is now, by the environment."""
    return {"engine": {"name": address, "server": server_of(_resolved_address(address))}}


def engine_of(ledger: Ledger, charge: Charge) -> str:
    """The engine that counts, or counted, for a charge: the one that was charged for."""
    return "spark" if any(decision.server is not None for decision in ledger.decisions_of(charge)) else "duckdb"


def count(plan: CountingPlan, decisions: Sequence[Decision], folder: Path, progress: Callable[[str], None]) -> Path:
    """Reads, bounds and counts the records of a plan into a private file.

    A decision about a server means that Spark counts there. `progress` is told each step as it begins.
    """
    server = next((decision for decision in decisions if decision.server is not None), None)
    if server is not None:
        from dphist_pipeline.confidential.engines import spark

        address = _resolved_address(server.name)
        if server_of(address) != server.server:
            raise engine_refused(
                server.name, "leads to another server than the one that was allowed; an operator can allow it anew"
            )
        progress("reading, bounding and counting by Spark")
        return spark.write_cube(plan, address, folder)
    from dphist_pipeline.confidential import cube

    staged = stage(plan, folder, progress)
    progress("bounding and counting")
    return cube.write_cube(plan, staged, folder)


def stage(plan: CountingPlan, folder: Path, progress: Callable[[str], None]) -> Path:
    """Reads the records of a plan into a private file, by DuckDB."""
    from dphist_pipeline.confidential.reading import ingest

    progress("reading records")
    return ingest.stage_rows(plan, folder)


def check(plan: CountingPlan, decisions: Sequence[Decision], folder: Path) -> dict[str, str]:
    """The engine's types of the columns that a plan names; refuses them as `count` would. No record is read."""
    if any(decision.server is not None for decision in decisions):
        from dphist_pipeline.confidential.engines import spark

        columns, _, _ = spark.open_source(plan, folder)
        return dict(columns.types)
    from dphist_pipeline.confidential.reading import ingest

    return ingest.check_columns(plan, folder)


def refuse_undeclared_dates(spec: ReleaseSpec, types: Mapping[str, str]) -> None:
    """Refuses a new charge over dates in text of which no field says how they are written.

    `types`: of columns, as far as they are known.
    """
    from dphist_pipeline.confidential.reading.source import ColumnRefused

    for column, field in spec.undeclared_dates.items():
        if types.get(column) in TEXT:
            raise ColumnRefused(column, undeclared_dates(field))


def _resolved_address(written: str) -> str:
    """A checked address with what the environment gives; a text of it remembers where it came from."""
    resolved, problems = resolve_templates({"spark": written}, ("spark",))
    address, problem = resolved["spark"], problems[0][1] if problems else ""
    assert isinstance(address, str)
    if not problem:
        try:
            server_of(address)
        except ValueError as error:
            problem = str(error)
    if problem:
        raise engine_refused(written, problem)
    return address
