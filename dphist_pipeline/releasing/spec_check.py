"""Reads a spec, and compares it with the store that it would be released in, before anything is charged.

No record is read: of a source only names and types of columns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path

from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.errors import LedgerError, UnknownAccount
from dphist_pipeline.releasing._plans import FilesMissing, plan_of, request_of
from dphist_pipeline.releasing._spec_changes import changes_since_signed
from dphist_pipeline.releasing._taken_names import refuse_other_length, refuse_taken_view
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store, StoreMissing
from dphist_pipeline.releasing.store_decisions import is_confidential
from dphist_pipeline.spec.mistakes import PeriodError
from dphist_pipeline.spec.sources import CodeListFolders, Decided

MOST_CHANGES = 8  # told of a spec since it was signed for


def load_spec(path: Path | str, store: Store | Path | None = None) -> ReleaseSpec:
    """The release spec in a YAML file, checked whole; no record is opened.

    Args:
        store: whose ledger declares folders of code lists public; the one of the working folder when left out. Without
            a store no code list is read.

    Raises:
        SpecError: with every mistake that was found, its place in the file and its mend.
    """
    return ReleaseSpec.load(path, declared_code_lists(store))


@dataclass(frozen=True)
class ColumnComparison:
    """What became of a comparison of columns: the declared types by column, or why nothing could be compared.

    `unreadable`: it is the source's fault: a file is missing, empty or damaged, and a release would be refused.
    """

    problem: str = ""
    unreadable: bool = False
    types: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SpecCheck:
    """A spec beside the store that it would be released in: open, or its folder, where there may be none yet."""

    spec: ReleaseSpec
    store: Store | Path | None

    def refuse_taken_view(self) -> None:
        """Refuses the name of a release that the catalogue of the store would need twice; there may be no store yet."""
        with suppress(StoreMissing):
            tables = self.spec.family.names if self.spec.family is not None else ()
            store = Store.open_named(self.store)
            refuse_taken_view(store, self.spec.release, tables)
            refuse_other_length(store, self.spec)

    def columns(self, now: datetime, key: str | None = None) -> ColumnComparison:
        """Compares the columns that the spec names with those of its source, which is opened if the ledger allows it.

        That of the period `key` is opened, or of the latest finished one.

        Raises:
            ColumnRefused: a column is missing, or of a type that cannot serve.
        """
        from dphist_pipeline.confidential.reading.source import UNIT_UNNAMED, SourceRefused
        from dphist_pipeline.releasing import _engine_choice as engines
        from dphist_pipeline.releasing.frames import FrameMissing, as_file

        spec = self.spec
        try:
            store = Store.open_named(self.store)
            period = spec.latest_period(now) if key is None else spec.period_named(key)
            ledger = store.ledger()
            accounts = [account.name for account in ledger.accounts()]
            if spec.account not in accounts:
                raise UnknownAccount(spec.account, accounts)
            decisions = ledger.decisions_for(request_of(spec, store.id, period.key))
            plan = plan_of(spec, period, decisions, will_charge=True)
            with tempfile.TemporaryDirectory(prefix="dphist_") as scratch, as_file(plan, None, Path(scratch)):
                return ColumnComparison(types=engines.check(plan, decisions, Path(scratch)))
        except (FilesMissing, SourceRefused) as error:
            return ColumnComparison(str(error), getattr(error, "problem", "") != UNIT_UNNAMED)
        except (StoreMissing, LedgerError, PeriodError, FrameMissing) as error:
            return ColumnComparison(str(error))

    def changed_since_signed(self) -> str:
        """A warning where the spec changed since an operator signed for it, before its first charge; else empty."""
        spec, store = self.spec, Store.open_named(self.store)
        changes = changes_since_signed(store, spec)
        if not changes or any(charge.release == spec.release for charge in store.ledger().books().every_charge()):
            return ""
        differences = "; ".join(f"`{field}` was {then} and is {now}" for field, then, now in changes[:MOST_CHANGES])
        differences += f"; and {len(changes) - MOST_CHANGES:,} more" if len(changes) > MOST_CHANGES else ""
        return (
            f"The spec of '{spec.release}' changed since an operator signed for it: {differences}. Before a first "
            "charge a change costs nothing, and after it a revision. First show an operator the spec "
            "as it is: dphist check --explain SPEC. What of it is not allowed yet is shown and signed by: dphist "
            "ledger allow --for SPEC."
        )

    def refuse_undeclared_dates(self, types: Mapping[str, str]) -> None:
        """Refuses dates in text of which no field of the spec says how they are written, as a new charge does.

        `types`: of columns, as far as they are known.

        Raises:
            ColumnRefused: with the line to write.
        """
        from dphist_pipeline.releasing import _engine_choice as engines

        engines.refuse_undeclared_dates(self.spec, {**self.spec.declared_types, **types})

    @property
    def public_address(self) -> str | None:
        """The bucket that the store's releases are copied to; None without one, or without a store yet."""
        with suppress(StoreMissing):
            return Store.open_named(self.store).public_address
        return None


def declared_code_lists(store: Store | Path | Callable[[], Store] | None = None) -> Decided:
    """What a ledger declares about code lists; asked for, and its store opened, when a spec names one.

    By default it is the store that `Store.folder` says; a missing one declares nothing.
    """

    @cache
    def decided() -> CodeListFolders:
        open_store = Store.open_named(store() if callable(store) else store)
        ledger = open_store.ledger()
        folders = [Path(decision.folder) for decision in ledger.decisions(EVERYWHERE) if decision.folder is not None]
        return CodeListFolders(tuple(folders), is_confidential(open_store, ledger.sources()))

    def declared() -> CodeListFolders:
        try:
            return decided()
        except StoreMissing:
            return CodeListFolders((), lambda path: True)

    return declared
