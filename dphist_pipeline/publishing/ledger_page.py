"""The privacy officer's report as a page: it runs no scripts and loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dphist_pipeline.publishing.card_pieces.facts import entries
from dphist_pipeline.publishing.plots_drawing import xml
from dphist_pipeline.publishing.plots_page import page, table

DECISIONS = {"entry": "entry", "at": "when", "by": "who", "did": "decision", "what": "of what", "reason": "why"}
CHARGES = {
    **{"release": "release", "period": "period", "revision": "revision", "epsilon": "ε", "at": "charged"},
    **{"state": "state", "reason": "why again", "notes": "what was said"},
}


def ledger_page(report: Mapping[str, Any]) -> str:
    """The report of `ledger_report.report`, as HTML."""
    span = f" of {report['year']}" if report["year"] else ""
    parts = "".join(map(_account, report["accounts"])) or "<p>No account is open.</p>"
    general = _rows("Decisions about the whole ledger", DECISIONS, report["general"])
    head = (
        f"<header><h1>Privacy budget{span}</h1><p class='kind'>Ledger <code>{xml(report['ledger'])}</code>; operators: "
        f"{xml(', '.join(report['operators']) or 'none yet')}</p></header>"
    )
    return page(f"Privacy budget{span}", f"{head}<main>{parts}{general}</main>")


def _account(account: Mapping[str, Any]) -> str:
    yearly = " each calendar year" if account["renews"] else ""
    shown = {
        "Protects": account["protects"],
        "Total": account["total"] + yearly,
        "Spent": account["spent"] + (" this year" if yearly else ""),
        "Left": account["left"] + (" this year" if yearly else ""),
        **({"Spent ever": account["spent_ever"]} if yearly else {}),
        "Reads": "; ".join(account["allowed"]) or "nothing yet",
        **({"Shares people with": ", ".join(account["shared_with"])} if account["shared_with"] else {}),
    }
    facts = entries({name: xml(fact) for name, fact in shown.items()})
    decisions = _rows("Decisions", DECISIONS, account["decisions"])
    charges = _rows("Charges", CHARGES, account["charges"])
    return f"<section><h2>{xml(account['account'])}</h2>{facts}{decisions}{charges}</section>"


def _rows(caption: str, columns: Mapping[str, str], found: list[Mapping[str, Any]]) -> str:
    if not found:
        return ""
    rows = [[xml(_text(row[name])) for name in columns] for row in found]
    return table(caption, list(columns.values()), rows)


def _text(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)
