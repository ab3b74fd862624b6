"""What an operator would decide so that a release may run: taken from its spec, told in words, signed as ever.

A spec widens nothing by itself: what it asks for is shown with a digest, and counts once an operator has signed it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dphist_pipeline.base.canonical_json import sha256
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.errors import Refused
from dphist_pipeline.ledger.decisions import EVERYWHERE, Decision
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.ledger.ledger import Account, Ledger
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.releasing._spec_changes import keep_signed_spec
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.releasing.store_decisions import (
    StoreDecisions,
    decision_refused,
    files_of,
    is_confidential,
    with_kinds,
)
from dphist_pipeline.spec.loading import folder_of_spec
from dphist_pipeline.spec.sources import CodeListFolders

DIGITS = 32  # of a digest, which nobody finds a second decision for


def not_signed(digest: str, command: str) -> Refused:
    """A decision that was shown, and that nobody signed."""
    return Refused(
        f"nothing was decided yet. To sign exactly this, and nothing else: {command} --yes {digest}", code="not_signed"
    )


def signed_another(shown_digest: str, digest: str) -> Refused:
    """The digest of another decision than the spec asks for now."""
    return Refused(
        f"--yes {shown_digest} was shown for another decision than the spec asks for now, which has the digest "
        f"{digest}. Look at what it asks for, and sign that. Nothing was decided.",
        code="not_signed",
    )


@dataclass(frozen=True)
class SpecDecisions:
    """What a spec asks an operator to decide.

    Nothing is decided about an account or a reading that is None: it is so already. `also_of`: other accounts that the
    source belongs to. `code_lists`: folders to be declared public, as entries hold them.
    """

    spec: ReleaseSpec
    store_id: str
    account: Account | None
    reading: Reading | None
    also_of: tuple[str, ...]
    code_lists: tuple[dict[str, Any], ...]

    @classmethod
    def to_open(
        cls,
        path: Path,
        store: Store,
        ledger: Ledger,
        account_name: str | None,
        total: Fraction,
        renews: bool,
        signatures: int,
        also_of: Sequence[str] = (),
    ) -> SpecDecisions:
        """What opens the account of a spec, and lets the release read what it asks for.

        The path may be FILE#RELEASE. `account_name`: the account as the operator named it, if so. `renews`: each
        calendar year has a fresh total.
        """
        spec, folders = _spec_and_lists(path, store, ledger)
        _refuse_other_name(spec, account_name)
        if spec.account in [account.name for account in ledger.accounts()]:
            problem = (
                f"is open already; for what this spec may read: dphist ledger allow --for {shlex.quote(str(path))}"
            )
            raise decision_refused(f"account {spec.account}", problem)
        terms = (str(spec.privacy_unit), spec.neighbours, total, "yearly" if renews else None, store.id, signatures)
        account = Account(spec.account, *terms)  # type: ignore[arg-type]
        return cls(spec, store.id, account, _reading(spec, store, ledger, also_of), tuple(also_of), folders)

    @classmethod
    def to_allow(
        cls, path: Path, store: Store, ledger: Ledger, account_name: str | None, also_of: Sequence[str] = ()
    ) -> SpecDecisions:
        """What lets a release of an open account read what its spec asks for, where that was not decided before.

        Raises:
            Refused: the account protects somebody else than the spec, or the operator named another one.
        """
        spec, folders = _spec_and_lists(path, store, ledger)
        _refuse_other_name(spec, account_name)
        account = ledger.account(spec.account)
        if (account.privacy_unit, account.neighbours) != (str(spec.privacy_unit), spec.neighbours):
            protects = f"protects {account.privacy_unit} ({account.neighbours})"
            raise decision_refused(
                f"account {spec.account}", f"{protects}, and the spec says {_protection(spec)}; change the spec"
            )
        reading: Reading | None = _reading(spec, store, ledger, also_of)
        if any(
            decision.reading == reading and set(also_of) <= {*decision.also_of}
            for decision in ledger.decisions(spec.account)
        ):
            reading = None
        return cls(spec, store.id, None, reading, tuple(also_of), folders)

    @property
    def facts(self) -> dict[str, Any]:
        """All that would be signed, as JSON values."""
        # A spec opens summed accounts alone, so their digest knows nothing of individual ones.
        individual = ("accounting", "left_out")
        terms = {} if self.account is None else {k: v for k, v in vars(self.account).items() if k not in individual}
        account = None if self.account is None else {**terms, "total": str(self.account.total)}
        return {
            "account": self.spec.account,
            "store": self.store_id,
            "opens": account,
            "source": None if self.reading is None else self.reading.facts(),
            "also_of": list(self.also_of),
            "code_lists": [{**folder["code_lists"]} for folder in self.code_lists],
        }

    @property
    def digest(self) -> str:
        """The digest of all that would be signed, and of nothing else."""
        return sha256(self.facts)[:DIGITS]

    def refuse_another(self, shown_digest: str) -> None:
        """Refuses a digest that was shown for another decision."""
        if shown_digest != self.digest:
            raise signed_another(shown_digest, self.digest)

    def missing_signature(self, command: str) -> Refused:
        """The refusal where nobody signed; the command would sign it, and lacks the digest."""
        return not_signed(self.digest, command)

    @property
    def words(self) -> dict[str, str]:
        """All that would be signed, in words."""
        words = {"account": self.spec.account}
        if self.account is not None:
            total = as_text(self.account.total) + (" each calendar year" if self.account.renews else " in all")
            words |= {
                "protects": _protection(self.spec),
                "total": f"epsilon {total}; this spec asks for {as_text(self.spec.epsilon)} a "
                f"{'release' if self.spec.period == 'none' else self.spec.period}",
            }
            if self.account.signatures > 1:
                words["signatures"] = f"{self.account.signatures} operators sign each later decision"
        words["reads"] = "no more than it may already" if self.reading is None else self.reading.in_words
        if not self.nothing:
            unit = "person" if self.spec.privacy_unit == "row" else self.spec.privacy_unit
            words["assumes"] = (
                f"that a row tells of its own {unit} alone: no axis is made of other people's rows, as the size of a "
                "household, a rank or a calibrated weight is"
            )
        if self.also_of:
            words["shared with"] = ", ".join(self.also_of)
        if self.code_lists:
            folders = ", ".join(folder["code_lists"]["folder"] for folder in self.code_lists)
            words["code lists"] = f"{folders}: public, for the specs of all accounts"
        return words

    @property
    def nothing(self) -> bool:
        """Whether all of it was decided before."""
        return self.account is None and self.reading is None and not self.code_lists

    @property
    def left_out(self) -> list[str]:
        """Commands for what the spec needs besides, and what each of them needs a reason or an address for."""
        spec, allow = self.spec, f"dphist ledger allow {self.spec.account}"
        commands = []
        if spec.source_sql is not None:
            commands.append(f"{allow} --query {shlex.quote(str(spec.source_sql))} --reason TEXT")
        if spec.engine == "spark":
            commands.append(f"{allow} --spark ADDRESS")
        commands += [f"{allow} --check {check} --reason TEXT" for check in spec.required_checks]
        return commands

    def keep(self, store: Store) -> None:
        """Keeps the spec as it was signed: the first release says what changed since.

        Raises:
            OSError: this user may not write to the store, or its folder for it is missing.
        """
        keep_signed_spec(store, self.spec)

    def sign(self, ledger: Ledger, operator: Operator) -> list[Decision | None]:
        """Enters the decisions, each as its own command would; None stands for one that waits for a signature."""
        decisions: list[Decision | None] = []
        if self.account is not None:
            ledger.open_account(self.account, operator, self.reading, self.also_of)
        elif self.reading is not None:
            decisions.append(
                ledger.allow(self.spec.account, {"source": self.reading.facts()}, operator, "", self.also_of)
            )
        decisions += [ledger.allow(EVERYWHERE, folder, operator) for folder in self.code_lists]
        return decisions


def _protection(spec: ReleaseSpec) -> str:
    return f"{spec.privacy_unit} ({spec.neighbours})"


def _refuse_other_name(spec: ReleaseSpec, account_name: str | None) -> None:
    if account_name not in (None, spec.account):
        raise decision_refused(f"account {account_name}", f"the spec charges {spec.account}; name that, or none")


def _reading(spec: ReleaseSpec, store: Store, ledger: Ledger, also_of: Sequence[str]) -> Reading:
    reading = with_kinds(spec)
    StoreDecisions(store, ledger).refuse_overlap(spec.account, reading, also_of)
    return reading


def _spec_and_lists(path: Path, store: Store, ledger: Ledger) -> tuple[ReleaseSpec, tuple[dict[str, Any], ...]]:
    """The spec, and the folders of its code lists that no operator has declared public yet.

    A code list is looked at where it lies in the spec's project; the store and sources are none.
    """
    declared = [Path(decision.folder) for decision in ledger.decisions(EVERYWHERE) if decision.folder is not None]
    of_office = is_confidential(store, ledger.sources())
    files: set[Path] = set()

    def forbidden(file: Path) -> bool:
        if of_office(file):
            return True
        files.add(file)
        return False

    project = folder_of_spec(str(path).partition("#")[0])
    spec = ReleaseSpec.load(path, lambda: CodeListFolders((project, *declared), forbidden))
    folders = sorted({file.parent for file in files if not any(file.is_relative_to(folder) for folder in declared)})
    outer = [folder for folder in folders if not any(folder != other and other in folder.parents for other in folders)]
    records = {Path(file) for file in files_of(with_kinds(spec))}
    for folder in outer:
        if any(file.is_relative_to(folder) for file in records):
            problem = "holds files of the spec's source; keep code lists in one of their own"
            raise decision_refused(f"folder {folder}", problem)
    return spec, tuple(StoreDecisions(store, ledger).code_lists(folder) for folder in outer)
