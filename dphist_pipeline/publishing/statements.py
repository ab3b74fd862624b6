"""What an account holds and what became of its charges, as people ask for it; judged and kept in the ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

from dphist_pipeline.ledger import opened
from dphist_pipeline.ledger.books import Books
from dphist_pipeline.ledger.decisions import Decision
from dphist_pipeline.ledger.entries import Account, Charge, Note, NoteKind, note_of
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.ledger.individual import PARTS, left_out_in_words, paid_by_year, price_of_left_out, price_of_row
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.limits import text_of


@dataclass(frozen=True)
class Statement:
    """An account's standing: `spent` and `left` in `year` if it renews yearly, else ever.

    In an individual account `spent` is what a unit has paid at most, and nothing that could be left is known.
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

    @property
    def individual(self) -> dict[str, str]:
        """What an individual account says in the place of what is left, from this year's charges alone."""
        charges = [(charge, charge.granted) for charge in self.charges if charge.granted and charge.year == self.year]
        each = Counter(f"{as_text(charge.epsilon)} for {granted.rows} rows" for charge, granted in charges)
        prices = [(price_of_row(charge.epsilon, granted.rows), granted.rows) for charge, granted in charges]
        facts = {"prices": ", ".join(f"{price} ({number} charges)" for price, number in each.items()) or "none yet"}
        if self.account.left_out:
            lost = charges[-1][1].everybody if charges else Fraction(0)
            bought = price_of_left_out(self.total, self.account.left_out, lost)
            facts["number of units left out"] = f"{as_text(bought)} in each release" if bought else "not this year"
        if charges:
            year = self._paid_by_year(charges[-1][1].everybody)
            facts["pays for"] = f"{year // prices[-1][0]} rows of a unit a year at the latest price"
            facts["units"] = left_out_in_words(year, prices, [charge.title for charge, _ in charges])
        return facts

    def most_rows(self, epsilon: Fraction, rows: int) -> int:
        """How many rows of a unit a year pays for at the price of one release; 0 where it would count nobody."""
        latest = next((charge.granted for charge in reversed(self.charges) if charge.year == self.year), None)
        everybody = latest.everybody if latest else Fraction(0)
        return max(self._paid_by_year(everybody), 0) // price_of_row(epsilon, rows)

    def counts_at_most(self, epsilon: Fraction, rows: int, period: str, most_periods: int) -> str:
        """What a release by a spec can count of a unit, and from which period of a year on units are left out."""
        most = self.most_rows(epsilon, rows)
        names = [f"{period} {number}" for number in range(1, most_periods + 1)]
        found = left_out_in_words(most * PARTS, [(PARTS, rows)] * most_periods, names)
        return (
            f"at the price of this release at most {most} rows of each unit are counted in a calendar year, fewer for "
            f"whoever other releases of this account counted. By this release alone, a unit is, {found}"
        )

    def _paid_by_year(self, everybody: Fraction) -> int:
        return paid_by_year(self.total, self.account.left_out, everybody)

    @staticmethod
    def name_of_decision(decision: Decision) -> str:
        """The name of what a decision allows; of a source with how it is read."""
        return decision.name if decision.reading is None else decision.reading.called

    @classmethod
    def of(cls, ledger: Ledger, name: str) -> Statement:
        """The statement of an account: what it holds now, what was spent of it and by which charges."""
        books = ledger.books()
        account, year = books.account(text_of("account", name)), books.year_at(opened.utc_now())
        shared = [cls._of(books, books.accounts[other], year, []) for other in books.permissions.sharing(name)]
        return cls._of(books, account, year, shared)

    @staticmethod
    def charges_with_note(ledger: Ledger, kind: NoteKind) -> list[tuple[tuple[str, str, int], Note]]:
        """Every charge with a note of a kind, as (release, period, revision), and what was said."""
        entries = [entry for entry in ledger.entries() if entry.kind == kind]
        return [((str(entry.release), str(entry.period), entry.revision or 0), note_of(entry)) for entry in entries]

    @classmethod
    def _of(cls, books: Books, account: Account, year: int, shared: list[Statement]) -> Statement:
        spent, name = books.spent(account.name, year if account.renews else None), account.name
        spent = min(spent, account.total) if account.is_individual else spent
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
