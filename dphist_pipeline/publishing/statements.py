"""What an account holds and what became of its charges, as people ask for it; judged and kept in the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dphist_pipeline.ledger import opened
from dphist_pipeline.ledger.amounts import as_text
from dphist_pipeline.ledger.books import Books
from dphist_pipeline.ledger.decisions import Decision
from dphist_pipeline.ledger.entries import Account, Charge, Note, NoteKind, note_of
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.limits import text_of


@dataclass(frozen=True)
class Statement:
    """An account's standing: `spent` and `left` in `year` if it renews yearly, else ever.

    `charges`: oldest first.
    `states`: by number of a charge, what became of it: unpublished, waits, approved, published, rejected, withdrawn.
    `notes`: by number, what was said about it, in order.
    `decisions`: what is allowed for it. `waiting`: entries of decisions that wait for a second signature.
    `shared`: of other accounts for which one of its sources is allowed as well: totals add up.
    """

    account: Account
    year: int
    total: Fraction
    spent: Fraction
    spent_ever: Fraction
    left: Fraction
    charges: list[Charge]
    states: dict[int, str] = field(default_factory=dict)
    notes: dict[int, list[Note]] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    shared: list[Statement] = field(default_factory=list)

    @property
    def rest(self) -> str:
        """The rest of the total in words, such as `3 of 26 left this year`."""
        year = " this year" if self.account.renews else ""
        return f"{as_text(self.left)} of {as_text(self.total)} left{year}"

    @staticmethod
    def called(decision: Decision) -> str:
        """What a decision allows, by its name; a source with how it is read."""
        return decision.name if decision.reading is None else decision.reading.called

    @classmethod
    def of(cls, ledger: Ledger, name: str) -> Statement:
        """What an account holds now, what was spent of it and by which charges."""
        books = ledger.books()
        account, year = books.account(text_of("account", name)), books.year_at(opened.utc_now())
        shared = [cls._of(books, books.accounts[other], year, []) for other in books.permissions.sharing(name)]
        return cls._of(books, account, year, shared)

    @staticmethod
    def noted(ledger: Ledger, kind: NoteKind) -> list[tuple[tuple[str, str, int], Note]]:
        """Every charge with a note of a kind, as (release, period, revision), and what was said."""
        entries = [entry for entry in ledger.entries() if entry.kind == kind]
        return [((str(entry.release), str(entry.period), entry.revision or 0), note_of(entry)) for entry in entries]

    @classmethod
    def _of(cls, books: Books, account: Account, year: int, shared: list[Statement]) -> Statement:
        spent, name = books.spent(account.name, year if account.renews else None), account.name
        charges = [charge for charge in books.every_charge() if charge.account == name]
        return cls(
            account=account,
            year=year,
            total=account.total,
            spent=spent,
            spent_ever=books.spent(name, None),
            left=account.total - spent,
            charges=charges,
            states={charge.number: books.state(charge) for charge in charges},
            notes={charge.number: [*books.notes.get(charge.number, {}).values()] for charge in charges},
            decisions=books.permissions.of(name),
            waiting=books.permissions.waiting_of(name),
            shared=shared,
        )
