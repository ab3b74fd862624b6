"""A report for a privacy officer: accounts, decisions and who made them, charges and the state of each publication."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.languages.texts import days_text, gettext, in_language, mark_text, pgettext, translate
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.entries import Entry
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.permissions import DECISIONS
from dphist_pipeline.ledger.signing import signer_of
from dphist_pipeline.publishing.pages import ledger_page
from dphist_pipeline.publishing.statements import Statement

_WORDS = {
    "opened": mark_text("opened the account"),
    "raised": mark_text("raised the total"),
    "disallowed": mark_text("took a decision back"),
    "keyed": mark_text("added an operator"),
    "rotated": mark_text("replaced their key"),
    "adopted": mark_text("adopted the store"),
    "moved": mark_text("moved the ledger"),
    "countersigned": mark_text("signed a decision"),
    "looked": mark_text("looked at exact numbers of the records"),
    "listed": mark_text("listed what waits for a second signature"),
}
_ALLOWED = {
    "source": mark_text("allowed a source"),
    "query": mark_text("allowed a query"),
    "engine": mark_text("allowed an engine"),
    "code_lists": mark_text("declared code lists public"),
    "clock": mark_text("said that the clock is right"),
    "version": mark_text("allowed an engine's version"),
    "check": mark_text("let a check hold releases back"),
    "waiver": mark_text("waived a period"),
}


@dataclass(frozen=True)
class LedgerReport:
    """A report on all accounts of a ledger, which is open and verified.

    A year limits decisions and charges; sums are those of the account today.
    """

    ledger: Ledger
    year: int | None = None

    def facts(self) -> dict[str, Any]:
        """All accounts as JSON values."""
        ledger, year = self.ledger, self.year
        entries = [entry for entry in ledger.entries() if year is None or entry.facts["year"] == year]
        signers = ledger.books().permissions.names
        accounts = []
        for account in ledger.accounts():
            statement = Statement.of(ledger, account.name)
            accounts.append(
                {
                    "account": account.name,
                    "protects": f"{account.privacy_unit} ({account.neighbours})",
                    "signatures": account.signatures,
                    "total": as_text(statement.total),
                    "renews": account.renews,
                    "spent": as_text(statement.spent),
                    "spent_ever": as_text(statement.spent_ever),
                    **(
                        {"individual": "; ".join(f"{name}: {says}" for name, says in statement.individual.items())}
                        if account.is_individual
                        else {"left": as_text(statement.left)}
                    ),
                    "spent_percent": float(100 * statement.spent / statement.total),
                    "allowed": [
                        f"{decision.kind} {Statement.name_of_decision(decision)}" for decision in statement.decisions
                    ],
                    "shared_with": [other.account.name for other in statement.shared],
                    "decisions": [
                        _decision_rows(entry, signers) for entry in entries if _is_about(entry, account.name)
                    ],
                    "held": _approval_counts(statement, year),
                    "charges": _charges(statement, year),
                }
            )
        return {
            "ledger": ledger.id,
            "year": year,
            "as_of": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
            "operators": sorted(ledger.operators().values()),
            "general": [_decision_rows(entry, signers) for entry in entries if _is_about(entry, EVERYWHERE)],
            "accounts": accounts,
        }

    def page(self, public: Path) -> str:
        """The report as HTML, in the office's language; `about.json` lies beside the public folder."""
        with in_language(About.of(public).language):
            return ledger_page(self.facts())


def _is_about(entry: Entry, account: str) -> bool:
    return entry.kind in DECISIONS and entry.account == account


def _decision_rows(entry: Entry, signers: dict[str, str]) -> dict[str, Any]:
    facts, key = entry.facts, signer_of(entry)
    kind = next((kind for kind in _ALLOWED if kind in facts), "")
    stated = facts.get(kind, {})
    change = Reading.of_facts(stated).called if kind == "source" else stated.get("address") or stated.get("name", "")
    if entry.kind in ("opened", "raised"):
        change = gettext("total %(total)s", total=facts["total"].removesuffix("/1"))
    elif entry.kind in ("keyed", "rotated"):
        change = facts["operator"]["name"]
    elif entry.kind == "moved":
        change = pgettext("place", "to %(place)s", place=facts["to"])
    elif entry.kind == "looked":
        change = gettext("release %(release)s, period %(period)s", release=facts["release"], period=facts["period"])
    elif entry.kind == "listed":
        change = ", ".join(gettext("entry %(number)s", number=number) for number in facts["waiting"])
    elif entry.kind in ("disallowed", "countersigned"):
        change = gettext("entry %(number)s", number=facts["decision"])
    return {
        "entry": entry.number,
        "at": entry.made_at,
        "when": _minute(entry.made_at),
        "by": signers.get(key, gettext("unknown")) if key else gettext("nobody signed it, as in earlier versions"),
        "did": translate(_WORDS.get(entry.kind) or _ALLOWED.get(kind, mark_text("decided"))),
        "what": change,
        "reason": facts.get("reason", ""),
    }


def _minute(at: str) -> str:
    return days_text(at[:16].replace("T", " "))


def _approval_counts(statement: Statement, year: int | None) -> dict[str, int]:
    """How many charges a person had to decide on, by what became of them."""
    states = (
        _state_in_words(statement.states[charge.number])
        for charge in statement.charges
        if charge.held and (year is None or charge.charged_at.startswith(str(year)))
    )
    return dict(sorted(Counter(states).items()))


def _state_in_words(state: str) -> str:
    return {
        "unpublished": gettext("unpublished"),
        "waits": gettext("waits"),
        "approved": gettext("approved"),
        "published": gettext("published"),
        "rejected": gettext("rejected"),
        "withdrawn": gettext("withdrawn"),
        "lost": gettext("lost"),
    }.get(state, state)


def _charges(statement: Statement, year: int | None) -> list[dict[str, Any]]:
    """Charges with their state (published, waiting, rejected, withdrawn or lost) and the reason of each revision."""
    return [
        {
            "release": charge.release,
            "period": charge.period,
            "revision": charge.revision,
            "epsilon": as_text(charge.epsilon),
            "at": charge.charged_at,
            "when": _minute(charge.charged_at),
            "state": _state_in_words(statement.states[charge.number]),
            "host": charge.folder.host if charge.folder else "",
            "reason": charge.reason,
            "notes": [f"{_state_in_words(note.kind)}: {note.text}" for note in statement.notes[charge.number]],
            "allowed_by": list(charge.allowed),
        }
        for charge in statement.charges
        if year is None or charge.charged_at.startswith(str(year))
    ]
