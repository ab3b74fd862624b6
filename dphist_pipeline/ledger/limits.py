"""What a ledger takes: names, texts and amounts within bounds; anything else is refused by name."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from dphist_pipeline.estimates.budget import LARGEST_EPSILON, SMALLEST_EPSILON
from dphist_pipeline.ledger.entries import Account, ChargeRequest
from dphist_pipeline.ledger.errors import LedgerError, not_recordable
from dphist_pipeline.ledger.letters import is_blank, is_disguised, without_invisible

LARGEST_TOTAL = Fraction(1_000_000)
_LARGEST_DENOMINATOR = 10**30
_LARGEST_REVISION = 1_000_000
_ACCOUNT_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_NEIGHBOURS = ("add_remove", "substitute")
_NAMES = {
    name: name.replace("_", " ")
    for name in ("account", "release", "period", "digest", "privacy_unit", "neighbours", "store_id")
}


def refuse_bad_account(account: Account) -> None:
    """Refuses an account with invalid terms; its name has 1 to 63 small letters, digits and _."""
    if not _ACCOUNT_NAME.fullmatch(text_of("account", account.name)):
        raise not_recordable("account", account.name, "small letters, digits and _, from a letter, at most 63")
    text_of("privacy unit", account.privacy_unit)
    text_of("store id", account.store_id)
    if account.neighbours not in _NEIGHBOURS:
        raise not_recordable("neighbours", account.neighbours, " or ".join(_NEIGHBOURS))
    if account.renews not in (None, "yearly"):
        raise not_recordable("renews", account.renews, "'yearly', or left out")
    if account.signatures not in (1, 2) or isinstance(account.signatures, bool):
        raise not_recordable("signatures", account.signatures, "1 or 2")
    refuse_bad_total(account.total)
    if account.accounting not in ("summed", "individual"):
        raise not_recordable("accounting", account.accounting, "'summed' or 'individual'")
    if account.is_individual:
        needs = {
            "--renews yearly": account.renews is None,
            "--neighbours add_remove": account.neighbours != "add_remove",
            "a --privacy-unit that is not `row`": account.privacy_unit == "row",
        }
        for what in (name for name, missing in needs.items() if missing):
            raise LedgerError("individual_needs", account=account.name, what=what)
    if account.left_out:
        refuse_bad_share(account)


def refuse_bad_share(account: Account) -> None:
    """Refuses a share of the total for the numbers of units left out that is none, leaves rows nothing or buys none."""
    share = account.left_out
    of_total = account.is_individual and isinstance(share, Fraction) and 0 < share < 1
    writable = of_total and share.denominator <= _LARGEST_DENOMINATOR
    if not writable or not SMALLEST_EPSILON <= account.total * share <= LARGEST_EPSILON:
        ends = f"from {float(SMALLEST_EPSILON):g} to {LARGEST_EPSILON}"
        raise not_recordable("left-out", str(share), f"a part of the total of an individual account, {ends}")


def refuse_bad_total(total: Fraction) -> None:
    """Refuses a total outside (0, 10^6], or one that is no exact fraction with a denominator of at most 10^30."""
    _refuse_bad_amount("total", total, Fraction(0), LARGEST_TOTAL)


def refuse_bad_spending(amount: Fraction) -> None:
    """Refuses what was spent elsewhere outside [0, 10^6], or no exact fraction with a denominator of at most 10^30."""
    if amount != 0:
        _refuse_bad_amount("what was spent elsewhere", amount, Fraction(0), LARGEST_TOTAL)


def refuse_bad_request(request: ChargeRequest) -> None:
    """Refuses an epsilon outside [10^-6, 50], a revision outside [1, 10^6], texts above 200 or 2000 characters."""
    for name, called in _NAMES.items():
        text_of(called, getattr(request, name))
    for called, text in (("reason", request.reason), ("upstream checked", request.upstream_checked)):
        if text != "":
            text_of(called, text, longest=2000)
    for called, name in vars(request.folder).items() if request.folder is not None else ():
        text_of(f"{called} of a confidential folder", name)
    if type(request.revision) is not int or not 1 <= request.revision <= _LARGEST_REVISION:
        raise not_recordable("revision", request.revision, f"a whole number from 1 to {_LARGEST_REVISION}")
    _refuse_bad_amount("epsilon", request.epsilon, SMALLEST_EPSILON, LARGEST_EPSILON)


def refuse_no_reason(what: str, reason: str) -> None:
    """Refuses an empty reason, or one that is no readable text of at most 2000 characters."""
    if reason == "" or is_blank(text_of("reason", reason, longest=2000)):
        raise LedgerError("reason_missing", what=what)


def refuse_blank(what: str, reason: str) -> None:
    """Refuses a new reason that shows nothing; those that stand in a ledger already stay readable."""
    if reason and not without_invisible(reason).strip():
        raise LedgerError("reason_missing", what=what)


@lru_cache(typed=True)  # a ledger holds the same few amounts again and again
def _refuse_bad_amount(what: str, amount: Fraction, least: Fraction, most: Fraction) -> None:
    """Refuses what is not an exact fraction within bounds (0 itself is never within) that can be written."""
    if not isinstance(amount, Fraction):
        raise not_recordable(what, type(amount).__name__, "an exact fraction, not a float or other number")
    if amount <= 0 or not least <= amount <= most:
        raise not_recordable(what, _rough(amount), f"more than 0, at least {float(least):g} and at most {most}")
    if amount.denominator > _LARGEST_DENOMINATOR:
        raise not_recordable(what, _rough(amount), "a fraction with a denominator of at most 30 digits")


def _rough(amount: Fraction) -> str:
    try:
        return f"{float(amount):.9g}"
    except OverflowError:
        return "a huge number"


def text_of(what: str, value: object, longest: int = 200) -> str:
    """The value, if it is text of 1 to `longest` characters without control or formatting characters.

    Those could disguise a message.
    """
    if not isinstance(value, str):
        raise not_recordable(what, type(value).__name__, "text")
    if not 1 <= len(value) <= longest:
        raise not_recordable(what, value[:60], f"text of 1 to {longest} characters")
    if is_disguised(value):
        raise not_recordable(what, value, "text without control characters or line breaks")
    return value
