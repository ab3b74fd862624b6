"""Makes the decisions of an operator from the options of a command: a source, a query, a folder of code lists.

Addresses start at the project of the working folder, as those of a spec start at the spec's project.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dphist_pipeline.errors import DphistError, Refused
from dphist_pipeline.ledger import opened as opened_ledger
from dphist_pipeline.ledger.clock import is_day_of
from dphist_pipeline.ledger.decisions import EVERYWHERE, FOR_ALL, Decision, SourceReading
from dphist_pipeline.ledger.errors import LedgerError, source_of_another
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.releasing import _taken_names as taken_names
from dphist_pipeline.releasing._expected_files import FilesMissing
from dphist_pipeline.releasing._period_lengths import refuse_other_length
from dphist_pipeline.releasing._spec_changes import changes_since_signed
from dphist_pipeline.releasing.plans import plan_of, reading_of, request_of, source_plan
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store, StoreMissing
from dphist_pipeline.spec.loading import resolve_templates
from dphist_pipeline.spec.mistakes import PeriodError, located
from dphist_pipeline.spec.sources import EVERY_ROW, CodeListFolders, Decided, RecordSource, as_glob

CHECK_NAME = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*:[A-Za-z0-9_]+", re.ASCII)
MOST_CHANGES = 8  # told of a spec since it was signed for
TEMPLATE = re.compile(r"\{\{.*?\}\}")


def decision_refused(what: str, problem: str) -> Refused:
    """Something that cannot be allowed as it was asked for."""
    return Refused(f"{what}: {problem}. Nothing was decided.", code="decision_refused")


def reading_of_options(base: Path, source: str, **fields: object) -> SourceReading:
    """How a source is read, checked by the fields of a spec; kinds of the unit's columns are read from its files.

    Args:
        base: the folder that relative addresses start from.
        source: files by name or glob, a server or an object store, with `{{ env.X }}` unresolved.

    Raises:
        Refused: naming the option.
    """
    resolved, problems = resolve_templates({"source": source}, ("source",))
    if problems:
        raise decision_refused("--source", problems[0][1])
    try:
        records = RecordSource.model_validate({**resolved, **fields}, context={"base": base})
    except ValidationError as error:
        (option, *_), problem = located(error, RecordSource.model_fields)[0]
    else:
        reading = reading_of(records)
        return replace(reading, unit_kinds=_kinds(records, reading))
    raise decision_refused(f"--{option}".replace("_", "-"), problem.rstrip(". "))


def reading_of_spec(spec: ReleaseSpec) -> SourceReading:
    """How the source of a spec is read, as options would say it; kinds of units are read from types of columns."""
    reading = reading_of(spec)
    return replace(reading, unit_kinds=_kinds(spec, reading))


def _kinds(records: RecordSource, reading: SourceReading) -> tuple[str, ...]:
    """The kinds of the unit's columns, read from names and types of columns alone; empty if no file is there yet."""
    from dphist_pipeline.confidential.reading.ingest import unit_kinds
    from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused

    if records.privacy_unit == EVERY_ROW or records.source_format == "frame":
        return ()
    with tempfile.TemporaryDirectory(prefix="dphist_") as scratch:
        try:
            return unit_kinds(source_plan(records, reading.folder), reading.unit, Path(scratch))
        except (SourceRefused, ColumnRefused):  # no files yet, or a query gives the unit
            return ()


def check_of_option(name: str) -> dict[str, Any]:
    """A check of an upstream asset that may hold releases back, as the ledger keeps the decision.

    Args:
        name: the key of the asset, its parts with slashes, a colon, and the name of its check.

    Raises:
        Refused: another form.
    """
    if not CHECK_NAME.fullmatch(name):
        raise decision_refused("--check", "must be the key of an asset and its check, such as raw/visits:complete")
    return {"check": {"name": name}}


def refuse_overlap(ledger: Ledger, account: str, reading: SourceReading, also_of: Sequence[str]) -> None:
    """Refuses a source some of whose files belong to another account, or are public code lists.

    Args:
        ledger: that holds the decisions made so far.
        account: that would be allowed to read the source.
        reading: of that source; files that come later are not compared.
        also_of: other accounts that the operator says share it.
    """
    files = set(files_of(reading))
    for decision in ledger.sources():
        other = decision.reading
        if other is None or decision.account in (account, *also_of):
            continue
        if files & set(files_of(other)):
            raise source_of_another(reading.address, account, [decision.account])
    for decision in ledger.decisions(EVERYWHERE):
        if decision.folder is not None and any(_lies_in(file, decision.folder) for file in files):
            raise decision_refused(
                f"source {reading.address}", f"has files in {decision.name}, a folder that was declared public"
            )


def files_of(reading: SourceReading) -> list[str]:
    """The files of a source that are there now, links followed.

    What `{{ env.X }}` gives is looked up; where it is not set, every file that it could name is taken.

    Args:
        reading: of files; servers and object stores give none.
    """
    if reading.folder is None:
        return []
    resolved, problems = resolve_templates({"source": reading.address}, ("source",))
    name = TEMPLATE.sub("*", reading.name) if problems else replace(reading, address=str(resolved["source"])).name
    pattern = str(Path(glob.escape(reading.folder)) / as_glob(name))
    return [os.path.realpath(path) for path in glob.glob(pattern, recursive=True)]  # noqa: PTH207 - it is absolute


def code_list_folder(store: Store, ledger: Ledger, folder: Path) -> dict[str, Any]:
    """What declares a folder of code lists public.

    Args:
        store: must not hold the folder, nor lie in it.
        ledger: of that store; no file of its sources may lie in the folder.
        folder: as the operator wrote it; links are followed.

    Raises:
        Refused: for one of these, or because there is no such folder.
    """
    real = os.path.realpath(folder)
    if not Path(real).is_dir():
        raise decision_refused(f"folder {folder}", "there is no such folder")
    root = os.path.realpath(store.root)
    if _lies_in(real, root) or _lies_in(root, real):
        raise decision_refused(
            f"folder {folder}", "holds the store, or lies in it; keep code lists in one of their own"
        )
    for decision in ledger.sources():
        if decision.reading is not None and any(_lies_in(file, real) for file in files_of(decision.reading)):
            raise decision_refused(f"folder {folder}", "holds files of a source; keep code lists in one of their own")
    return {"code_lists": {"name": str(folder), "folder": real}}


def query_of_file(file: Path) -> dict[str, Any]:
    """What allows a query: the digest of its file, and the file's name.

    Args:
        file: of SQL; its bytes are allowed, whatever its name is later.

    Raises:
        Refused: it cannot be read.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        problem = error.strerror or "cannot be read"
    else:
        return {"query": {"sha256": hashlib.sha256(content).hexdigest(), "name": str(file)}}
    raise decision_refused(f"query {file}", problem)


def clock_of_option(day: str) -> dict[str, Any]:
    """What says that this machine's clock is right: the day, which the operator knows from elsewhere.

    Args:
        day: as the operator wrote it, '2026-11-02'.

    Raises:
        Refused: it is no day, or not that of the clock.
    """
    now = opened_ledger.utc_now()
    if not is_day_of(day, now):
        problem = f"this machine's clock says {now}. Name the day that it is today; where the two differ, set the clock"
        raise decision_refused(f"--clock {day}", problem)
    return {"clock": {"name": day}}


def version_of_option(written: str) -> dict[str, Any]:
    """What allows another minor version of DuckDB than the suite passed with.

    Args:
        written: as the operator wrote it: `duckdb=2.1`.

    Raises:
        Refused: it names no minor version of DuckDB.
    """
    if not FOR_ALL["version"].fullmatch(written):
        raise decision_refused(f"--engine {written}", "must be written as duckdb=2.1, by major and minor version")
    return {"version": {"name": written}}


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
class Compared:
    """What became of a comparison of columns.

    Attributes:
        problem: why nothing could be compared; empty after a comparison.
        types: of the columns that the spec names, as the source declares them; empty without a comparison.
    """

    problem: str = ""
    types: Mapping[str, str] = field(default_factory=dict)


def compare_columns(spec: ReleaseSpec, store: Path | None, now: datetime, named: str | None = None) -> Compared:
    """Compares the columns that a spec names with those of its source; opens only a source that the ledger allows.

    Args:
        named: key of the period whose source is opened; the latest finished one when left out.

    Raises:
        ColumnRefused: a column is missing, or of a type that cannot serve.
    """
    from dphist_pipeline.confidential.reading.source import SourceRefused
    from dphist_pipeline.releasing import engines
    from dphist_pipeline.releasing.frames import FrameMissing, as_file

    try:
        opened = Store.named(store)
        period = spec.latest_period(now) if named is None else spec.period_named(named)
        ledger = opened.ledger()
        if spec.account not in [account.name for account in ledger.accounts()]:
            how = "dphist ledger open --for SPEC --total EPSILON opens it, and lets the release read its source"
            return Compared(f"account {spec.account} is not open yet: {how}")
        decisions = ledger.allowed(request_of(spec, opened.id, period.key))
        plan = plan_of(spec, period, decisions[0].reading)
        with tempfile.TemporaryDirectory(prefix="dphist_") as scratch, as_file(plan, None, Path(scratch)):
            return Compared(types=engines.check(plan, decisions, Path(scratch)))
    except (StoreMissing, LedgerError, PeriodError, FilesMissing, FrameMissing, SourceRefused) as error:
        return Compared(str(error))


def changed_since_signed(spec: ReleaseSpec, store: Store) -> str:
    """A warning where a spec changed since an operator signed for it, before its first charge; else empty."""
    changes = changes_since_signed(store, spec)
    if not changes or any(charge.release == spec.release for charge in store.ledger().books().every_charge()):
        return ""
    told = "; ".join(f"`{field}` was {then} and is {now}" for field, then, now in changes[:MOST_CHANGES])
    told += f"; and {len(changes) - MOST_CHANGES:,} more" if len(changes) > MOST_CHANGES else ""
    return (
        f"The spec of '{spec.release}' changed since an operator signed for it: {told}. Before a first charge a change "
        "costs nothing, and after it a revision. First show an operator the spec "
        "as it is: dphist check --explain SPEC. What of it is not allowed yet is shown and signed by: dphist ledger "
        "allow --for SPEC."
    )


def unsaid_dates(spec: ReleaseSpec, store: Path | None, period: str, opens: bool = True) -> str:
    """A warning where the period's column is text and the spec does not say how dates are written; else empty.

    Args:
        period: key of the period whose source is opened, where the file's kind does not say that all is text.
        opens: whether a source may be opened: a replay opens none. Only names and types of columns are read.
    """
    if spec.period_column is None or spec.period_format is not None:
        return ""
    types: Mapping[str, str] = spec.declared_types
    if not types and opens:
        with suppress(DphistError):  # what was published stays, whatever became of the source since
            types = compare_columns(spec, store, datetime.now(UTC), period).types
    return spec.unsaid_dates(types)


def refuse_taken_view(spec: ReleaseSpec, store: Path | None) -> None:
    """Refuses the name of a release that the catalogue of the store would need twice.

    Args:
        store: as on the command line; there may be none yet.

    Raises:
        Halted: with the other release.
    """
    with suppress(StoreMissing):
        tables = spec.family.names if spec.family is not None else ()
        opened = Store.named(store)
        taken_names.refuse_taken_view(opened, spec.release, tables)
        refuse_other_length(opened, spec)


def public_address(store: Path | None) -> str | None:
    """The bucket that a store's releases are copied to; None without one, or without a store yet."""
    with suppress(StoreMissing):
        return Store.named(store).public_address
    return None


def declared_code_lists(store: Store | Path | Callable[[], Store] | None = None) -> Decided:
    """What a ledger declares about code lists; asked for, and its store opened, when a spec names one.

    Args:
        store: open, its folder, or what gives it; by default as `Store.folder` says. A missing one declares nothing.
    """

    @cache
    def decided() -> CodeListFolders:
        opened = store() if callable(store) else store
        opened = opened if isinstance(opened, Store) else Store.named(opened)
        ledger = opened.ledger()
        folders = [Path(made.folder) for made in ledger.decisions(EVERYWHERE) if made.folder is not None]
        return CodeListFolders(tuple(folders), is_confidential(opened, ledger.sources()))

    def declared() -> CodeListFolders:
        try:
            return decided()
        except StoreMissing:
            return CodeListFolders((), lambda path: True)

    return declared


def is_confidential(store: Store, decisions: Iterable[Decision]) -> Callable[[Path], bool]:
    """Whether a file, links followed, is one of the store's or of a source's, by any name.

    Args:
        store: every file in its folder is confidential.
        decisions: what its operators allowed; those without a reading are passed over.
    """
    root, held = os.path.realpath(store.root), [decision.reading for decision in decisions if decision.reading]

    def found(path: Path) -> bool:
        if _lies_in(os.path.realpath(path), root):
            return True
        return any(_is_same(path, file) for reading in held for file in files_of(reading))

    return found


def _lies_in(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)


def _is_same(path: Path, file: str) -> bool:
    try:
        return path.samefile(file)
    except OSError:
        return False
