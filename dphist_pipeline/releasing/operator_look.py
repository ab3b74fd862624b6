"""An operator's look at records: noted in the ledger first, then shown on a terminal by `confidential` itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from dphist_pipeline.confidential.looking import Terminal, show_records
from dphist_pipeline.errors import Refused
from dphist_pipeline.releasing._plans import plan_of, request_of
from dphist_pipeline.releasing.frames import as_file
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.run import marking_uncharged, resolve_period
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.releasing.store_decisions import StoreDecisions


def look_refused(release: str) -> Refused:
    """Records that `dphist look` cannot show as the release would read them."""
    return Refused(
        f"release '{release}' is counted by Spark, and a look reads by DuckDB on this machine. Look with a tool of "
        "the server that holds the records. Nothing was read, noted or spent.",
        code="look_refused",
    )


def look(
    spec: ReleaseSpec,
    store: Store,
    descriptor: int,
    period: str | None = None,
    reason: str = "",
    now: datetime | None = None,
) -> None:
    """Notes in the ledger that an operator looks, then writes exact numbers to their terminal; returns nothing.

    The note comes first: whatever is seen was noted, also where the reading fails. The latest period that is over is
    read when none is named.

    Raises:
        Refused: the descriptor is no terminal, and nothing was read or noted; or another engine counts the release.
    """
    with marking_uncharged():
        terminal = Terminal(descriptor)
        chosen, ledger = resolve_period(spec, period, now or datetime.now(UTC)), store.ledger()
        store.sweep()
        request = request_of(spec, store.id, chosen.key)
        decisions = ledger.decisions_for(request)
        if any(decision.server is not None for decision in decisions):
            raise look_refused(spec.release)
        with store.run(Key(spec.release, chosen.key, 0)) as folder:
            plan = plan_of(spec, chosen, decisions)
            with as_file(plan, None, folder) as opened:
                with StoreDecisions(store, ledger).signing() as operator:
                    ledger.note_look(spec.account, spec.release, chosen.key, spec.digest, reason, operator)
                show_records(replace(opened, rows_seen=None), folder, terminal)
