"""What operators decide about a store: each decision is signed with their key, and known to the store's witness.

Addresses that a command names start at the project of the working folder, as those of a spec start at the spec's
project.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphist_pipeline.base.files import may
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.errors import Refused
from dphist_pipeline.ledger import opened as opened_ledger
from dphist_pipeline.ledger.clock import is_day_of
from dphist_pipeline.ledger.decisions import EVERYWHERE, FOR_ALL, Decision
from dphist_pipeline.ledger.entries import Entry
from dphist_pipeline.ledger.errors import LedgerError, LedgerMoved, source_of_another
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.limits import refuse_bad_spending
from dphist_pipeline.ledger.moving import move
from dphist_pipeline.ledger.postgresql import ledger_database
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.ledger.witness import Witness, WitnessedCharge
from dphist_pipeline.releasing.due import LATER, Cadence, charges_of
from dphist_pipeline.releasing.store import Key, Store, store_unusable
from dphist_pipeline.spec.periods import EVERYTHING

if TYPE_CHECKING:
    from dphist_pipeline.spec.sources import RecordSource

CHECK_NAME = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*:[A-Za-z0-9_]+", re.ASCII)
TEMPLATE = re.compile(r"\{\{.*?\}\}")


def decision_refused(subject: str, problem: str) -> Refused:
    """Something that cannot be allowed as it was asked for."""
    return Refused(f"{subject}: {problem}. Nothing was decided.", code="decision_refused")


def adoption_unclear(root: Path, missing: list[str], unknown: list[str]) -> Refused:
    """A store that is adopted without saying what was spent."""
    stated = " ".join(f"--spent-elsewhere {account}=EPSILON" for account in missing)
    problem = (
        f"its witness is gone, so that nobody knows what other copies of it spent. State it for every account: "
        f"{stated} (0 if nothing was)"
        if missing
        else f"it has no account {', '.join(unknown)}"
    )
    return Refused(f"the store at {root} is not adopted: {problem}. Nothing was changed.", code="adoption_unclear")


def nothing_to_waive(release: str, period: str, problem: str) -> Refused:
    """A period that is not due, and will not be."""
    return Refused(f"release '{release}', period {period}: {problem}. Nothing was decided.", code="nothing_to_waive")


@dataclass(frozen=True)
class StoreDecisions:
    """Enters the decisions of operators about a store."""

    store: Store
    ledger: Ledger

    @classmethod
    def of(cls, store: Store) -> StoreDecisions:
        """Opens the ledger of a store."""
        return cls(store, store.ledger())

    @contextmanager
    def signing(self) -> Iterator[Operator]:
        """Gives the operator who decides, and has the witness note the decision afterwards.

        A ledger of an older version knows no operator and no witness: its first decision brings both.
        The decision is entered while the context is open.
        """
        store, ledger = self.store, self.ledger
        first = not ledger.operators()
        operator = Operator.load_or_make() if first else Operator.load()
        witness = store.witness(ledger)
        if not first:
            store.refuse_truncated_ledger(ledger, witness)
        yield operator
        if first:
            witness.enrol(store.id, ledger.standing().started_by)
            witness.vouch(store.id, ledger.standing)
        # A decision counts at once: a ledger that is put back from before it is refused.
        if witness.standing(store.id) is not None:
            witness.note_head(store.id, *ledger.head())

    def list_waiting(self) -> list[int] | None:
        """Says which decisions of earlier versions wait for a second signature: see `Ledger.list_waiting`."""
        if not self.ledger.books().permissions.lacks_list_of_waiting:
            return None  # no operator's key is needed
        with self.signing() as operator:
            return self.ledger.list_waiting(operator)

    def allow(
        self, account: str, what: dict[str, Any], reason: str = "", also_of: Sequence[str] = ()
    ) -> Decision | None:
        """Enters that something is allowed for an account, or `EVERYWHERE`; None where it waits for a second signature.

        `what`: a fact of a decision by its kind, as the methods and functions here give it.
        """
        with self.signing() as operator:
            return self.ledger.allow(account, what, operator, reason, also_of)

    def reading(self, base: Path, account: str, also_of: Sequence[str], source: str, **fields: object) -> Reading:
        """The reading of a source, checked by the fields of a spec; kinds of a unit's columns are read from files.

        Args:
            source: files by name or glob, a server or an object store, with `{{ env.X }}` unresolved.

        Raises:
            Refused: naming the option, or the account that the source belongs to.
        """
        from pydantic import ValidationError

        from dphist_pipeline.spec.loading import resolve_templates
        from dphist_pipeline.spec.mistakes import with_location
        from dphist_pipeline.spec.sources import RecordSource

        resolved, problems = resolve_templates({"source": source}, ("source",))
        if problems:
            raise decision_refused("--source", problems[0][1])
        try:
            records = RecordSource.model_validate({**resolved, **fields}, context={"base": base})
        except ValidationError as error:
            (option, *_), problem = with_location(error, RecordSource.model_fields)[0]
        else:
            reading = with_kinds(records)
            self.refuse_overlap(account, reading, also_of)
            return reading
        raise decision_refused(f"--{option}".replace("_", "-"), problem.rstrip(". "))

    def refuse_overlap(self, account: str, reading: Reading, also_of: Sequence[str]) -> None:
        """Refuses a source some of whose files belong to another account, or are public code lists.

        `also_of`: other accounts that the operator says share it. Files that come later are not compared.
        """
        files = set(files_of(reading))
        for decision in self.ledger.sources():
            other = decision.reading
            if other is None or decision.account in (account, *also_of):
                continue
            if files & set(files_of(other)):
                raise source_of_another(reading.address, account, [decision.account])
        for decision in self.ledger.decisions(EVERYWHERE):
            if decision.folder is not None and any(_lies_in(file, decision.folder) for file in files):
                raise decision_refused(
                    f"source {reading.address}", f"has files in {decision.name}, a folder that was declared public"
                )

    def code_lists(self, folder: Path) -> dict[str, Any]:
        """The decision that a folder of code lists is public, links followed.

        Raises:
            Refused: the store lies in it, or it in the store; a file of a source lies there; there is no such folder.
        """
        real = os.path.realpath(folder)
        if not Path(real).is_dir():
            raise decision_refused(f"folder {folder}", "there is no such folder")
        root = os.path.realpath(self.store.root)
        if _lies_in(real, root) or _lies_in(root, real):
            raise decision_refused(
                f"folder {folder}", "holds the store, or lies in it; keep code lists in one of their own"
            )
        for decision in self.ledger.sources():
            if decision.reading is not None and any(_lies_in(file, real) for file in files_of(decision.reading)):
                raise decision_refused(
                    f"folder {folder}", "holds files of a source; keep code lists in one of their own"
                )
        return {"code_lists": {"name": str(folder), "folder": real}}

    def waive(self, release: str, period: str, reason: str, and_later: bool = False) -> Decision:
        """Says that a period of a release never comes, so that nothing is due for it; the same again changes nothing.

        `and_later`: every later period is waived, too: the release has ended. The reason has 1 to 2000 characters.

        Raises:
            Refused: the release was never charged, or the period was, or is none of the release's.
        """
        charged = {charge.period for charge, _ in charges_of(self.ledger, release)}
        if not charged:
            raise nothing_to_waive(
                release, period, "nothing was ever charged for this release, so nothing of it is due"
            )
        if EVERYTHING in charged:
            raise nothing_to_waive(release, period, "this release has no periods")
        if period in charged:
            raise nothing_to_waive(release, period, "it was charged already, so it is not due")
        cadence = Cadence.last_charged(self.store, release)
        if cadence is not None:
            cadence.rule.period_of(period)
        waiver = {"name": f"{release}/{period}{LATER if and_later else ''}"}
        decision = self.allow(EVERYWHERE, {"waiver": waiver}, reason)
        assert decision is not None  # a waiver waits for no second signature
        return decision

    @staticmethod
    def move_ledger(store: Store, address: str) -> Ledger:
        """Moves a store's ledger to another database, and closes the old one; after a crash, the same call finishes it.

        The database holds no ledger, and is not the witness's either.
        """
        witness, operator = Witness.at(store.witness_file), Operator.load()
        witness.refuse_ledger(ledger_database(address).place)
        with suppress(LedgerMoved):  # by this call, which was cut short, or elsewhere: moving tells the two apart
            store.refuse_truncated_ledger(store.ledger(), witness)
        ledger = move(store.ledger_url, store.ledger_id, address, operator)
        witness.note_head(store.id, *ledger.head())
        return ledger

    @staticmethod
    def adopt(store: Store, reason: str, elsewhere: Mapping[str, Fraction]) -> tuple[Adoption, Entry]:
        """Starts a new generation of a store whose ledger or witness went missing; other copies draw nothing any more.

        `elsewhere`: what was spent that neither ledger nor witness holds, by account. Gives what was decided, and its
        entry, which may wait for a second signature.

        Raises:
            Refused: the witness is gone, and what was spent elsewhere was not stated for every account.
            Halted: this user cannot see what was rejected in it.
        """
        adoption = Adoption.of(store)
        missing, unknown = adoption.accounts_to_state(elsewhere), sorted(set(elsewhere) - {*adoption.accounts})
        if missing or unknown:
            raise adoption_unclear(store.root, missing, unknown)
        for epsilon in elsewhere.values():
            refuse_bad_spending(epsilon)
        ledger, operator = adoption.ledger, Operator.load()
        entry = ledger.adopt(
            reason, adoption.carried, elsewhere, operator, denies=adoption.denies, generation=adoption.generation
        )
        if ledger.waiting(entry.number) is None:
            adoption.finish()
        return adoption, entry

    @classmethod
    def sign(cls, store: Store, number: int) -> Adoption | None:
        """Gives a decision its second signature; an adoption is judged again by what ledger and witness hold now.

        Gives the adoption, if it is one.

        Raises:
            LedgerError: it does not wait; `adoption_lapsed`, another adoption is needed by now.
        """
        # Not `store.ledger()`: what an adoption is about went missing with the ledger.
        first = Ledger.open(store.ledger_url, store.ledger_id).waiting(number)
        if first is None or first.kind != "adopted":
            decisions = cls.of(store)
            with decisions.signing() as operator:
                decisions.ledger.countersign(number, operator)
            return None
        adoption = Adoption.of(store)
        stated = first.facts
        if (stated["generation"], stated["carried"]) != (
            adoption.generation,
            [charge.facts() for charge in adoption.carried],
        ) or adoption.accounts_to_state(stated["elsewhere"]):
            raise LedgerError("adoption_lapsed", number=number)
        adoption.ledger.countersign(number, Operator.load())
        adoption.finish()
        return adoption


@dataclass(frozen=True)
class Adoption:
    """The decision to adopt a store, by what its ledger and its witness hold now."""

    store: Store
    ledger: Ledger
    witness: Witness
    known: bool  # whether the witness knows the store
    carried: tuple[WitnessedCharge, ...]  # what it holds and the ledger does not: it counts as spent
    denies: bool  # whether it holds anything that the ledger does not, or not the store's generation
    generation: int  # the number of the new one
    forgotten: set[Path]  # files of rejections whose entries went missing with the ledger

    @classmethod
    def of(cls, store: Store) -> Adoption:
        """Compares the ledger with the witness.

        Raises:
            Halted: this user cannot see what was rejected in the store.
            LedgerError: the ledger lacks an entry that a publication names, and the witness does not hold it either.
        """
        if not may(store.confidential, os.R_OK | os.X_OK):
            problem = (
                "is not adopted: this user may not look into its confidential/, which holds what was rejected. Run it "
                "as root, with DPHIST_OPERATOR_KEY=FILE for the operator's key. Nothing was changed."
            )
            raise store_unusable(store.root, problem)
        # Not `store.ledger()`: what was published or rejected names entries that went missing with the ledger.
        ledger = Ledger.open(store.ledger_url, store.ledger_id)
        witness, own = store.witness(ledger), ledger.standing()
        standing = witness.standing(store.id)
        seen = standing.charges if standing else ()
        held = {charge.hash for charge in ledger.books().every_charge()}
        carried = tuple(charge for charge in seen if charge.hash not in held)
        fits = (
            standing is not None
            and (standing.generation, standing.started_by) == (own.generation, own.started_by)
            and seen == own.charges[: len(seen)]
            and store.missing_head(ledger, witness) is None
        )
        forgotten = store.forgotten_rejections(ledger)
        entries = [name for name in store.named_entries() if store.root / name[0] not in forgotten]
        ledger.require(entries, {charge.hash for charge in carried})
        generation = 1 + max(own.generation, standing.generation if standing else 0)
        return cls(store, ledger, witness, standing is not None, carried, not fits, generation, forgotten)

    def spent(self) -> dict[str, Fraction]:
        """The epsilon that is counted as spent by the witness's word alone, by account."""
        names = {charge.account for charge in self.carried}
        return {
            name: sum((charge.epsilon for charge in self.carried if charge.account == name), Fraction(0))
            for name in sorted(names)
        }

    @property
    def accounts(self) -> list[str]:
        """Names of all accounts of the ledger."""
        return [account.name for account in self.ledger.accounts()]

    def accounts_to_state(self, elsewhere: Iterable[str]) -> list[str]:
        """Accounts of which it must be stated what was spent elsewhere, since no witness knows, and is not."""
        return [] if self.known else sorted({*self.accounts} - {*elsewhere})

    def finish(self) -> None:
        """Has the witness begin the generation, and takes away what was rejected in a ledger that is gone."""
        self.witness.begin_generation(self.store.id, self.ledger.standing)
        self.witness.note_head(self.store.id, *self.ledger.head())
        for rejection in self.forgotten:
            # Its charge is never drawn again; what was drawn for it must not come back with an older journal either.
            release, period, _ = rejection.relative_to(self.store.confidential / "rejected").parts
            key = Key(release, period, int(rejection.stem))
            shutil.rmtree(self.store.journal(key), ignore_errors=True)
            rejection.unlink()


def asked_by_options(
    *,
    query: Path | None = None,
    check: str | None = None,
    spark: str | None = None,
    clock: str | None = None,
    engine: str | None = None,
) -> list[dict[str, Any]]:
    """The decisions that the options of a command ask an operator for, in this order.

    Args:
        query: a file of SQL; its bytes are allowed, whatever its name is later.
        check: of an upstream asset that may hold releases back: the key of the asset, its parts with slashes, a colon,
            and the name of its check.
        spark: the address of a server of Spark as written, with `{{ env.X }}`, which is looked up here.
        clock: the day, which the operator knows from elsewhere: this machine's clock is right.
        engine: another minor version of DuckDB than the suite passed with: `duckdb=2.1`.

    Raises:
        Refused: a file that cannot be read, another form of a check, a day that is not today, no version of DuckDB.
    """
    from dphist_pipeline.releasing import _engine_choice as engines

    decisions = [_query(query)] if query is not None else []
    decisions += [_check(check)] if check is not None else []
    decisions += [engines.allowed_server(spark)] if spark is not None else []
    decisions += [_clock(clock)] if clock is not None else []
    return decisions + ([_version(engine)] if engine is not None else [])


def _query(file: Path) -> dict[str, Any]:
    from dphist_pipeline.spec.signed_queries import read_query_file

    try:
        query = read_query_file(file, str(file))
    except ValueError as error:
        problem = str(error).rstrip(". ")
    else:
        return {"query": {"sha256": query.sha256, "name": str(file), "tries": True}}
    raise decision_refused("--query", problem)


def _check(name: str) -> dict[str, Any]:
    if not CHECK_NAME.fullmatch(name):
        raise decision_refused("--check", "must be the key of an asset and its check, such as raw/visits:complete")
    return {"check": {"name": name}}


def _clock(day: str) -> dict[str, Any]:
    now = opened_ledger.utc_now()
    if not is_day_of(day, now):
        problem = f"this machine's clock says {now}. Name the day that it is today; where the two differ, set the clock"
        raise decision_refused(f"--clock {day}", problem)
    return {"clock": {"name": day}}


def _version(option: str) -> dict[str, Any]:
    # Decisions about Polars are read, and made from the next version on: programs of before could not read the ledger.
    if not FOR_ALL["version"].fullmatch(option) or not option.startswith("duckdb="):
        raise decision_refused(f"--engine {option}", "must be written as duckdb=2.1, by major and minor version")
    return {"version": {"name": option}}


def with_kinds(records: RecordSource) -> Reading:
    """The reading of a source, with the kinds of the unit's columns.

    They are read from names and types of columns alone; none if no file is there yet, or a query gives the unit.
    """
    from dphist_pipeline.confidential.reading.ingest import unit_kinds
    from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused
    from dphist_pipeline.releasing._plans import source_plan
    from dphist_pipeline.spec.sources import EVERY_ROW

    reading = records.reading
    if records.privacy_unit == EVERY_ROW or records.source_format == "frame":
        return reading
    with tempfile.TemporaryDirectory(prefix="dphist_") as scratch:
        try:
            return replace(reading, unit_kinds=unit_kinds(source_plan(records, reading), Path(scratch)))
        except (SourceRefused, ColumnRefused):
            return reading


def is_confidential(store: Store, decisions: Iterable[Decision]) -> Callable[[Path], bool]:
    """Whether a file, links followed, is one of the store's folder or of a source's, by any name."""
    root, held = os.path.realpath(store.root), [decision.reading for decision in decisions if decision.reading]

    def found(path: Path) -> bool:
        if _lies_in(os.path.realpath(path), root):
            return True
        return any(_is_same(path, file) for reading in held for file in files_of(reading))

    return found


def files_of(reading: Reading) -> list[str]:
    """The files of a source that are there now, links followed; none of a server or an object store.

    What `{{ env.X }}` gives is looked up; where it is not set, every file that it could name is taken.
    """
    from dphist_pipeline.spec.loading import resolve_templates
    from dphist_pipeline.spec.sources import as_glob

    if reading.folder is None:
        return []
    resolved, problems = resolve_templates({"source": reading.address}, ("source",))
    name = TEMPLATE.sub("*", reading.name) if problems else replace(reading, address=str(resolved["source"])).name
    pattern = str(Path(glob.escape(reading.folder)) / as_glob(name))
    return [os.path.realpath(path) for path in glob.glob(pattern, recursive=True)]  # noqa: PTH207 - it is absolute


def _lies_in(path: str, folder: str) -> bool:
    """Whether a path, links followed, is a folder or below it."""
    return Path(path).is_relative_to(folder)


def _is_same(path: Path, file: str) -> bool:
    try:
        return path.samefile(file)
    except OSError:
        return False
