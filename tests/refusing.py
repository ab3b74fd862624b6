"""What every refusal must be: one clear message, nothing spent, nothing left behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from office import Office, Ran

JARGON = re.compile(
    r"Traceback|pydantic|duckdb|sqlalchemy|sqlite3\.|polars|pyarrow|Exception|Errno|errors\.|http|None|\[type="
)


def check_refused(ran: Ran, *says: str) -> None:
    """One message, on standard error alone, in our own words."""
    assert ran.code in (1, 2)
    if ran.out.startswith("{"):  # with --json, for a program, too; a query is shown before it is signed
        (told,) = json.loads(ran.out).values()
        assert told["message"].split() == ran.err.removeprefix("error: ").split()
    message = re.sub(r"^(  · [a-z ]+\n)+", "", ran.err)
    assert message.startswith("error: ") and message.count("error:") == 1
    assert JARGON.search(message) is None
    for words in says:
        assert words in message, f"{words!r} is not in {message!r}"


def check_changes_nothing(office: Office, ask: Callable[[], Ran], *says: str) -> None:
    """Asks twice, since a refusal may not depend on an earlier one, and compares the whole project."""
    before = office.state()
    for _ in range(2):
        check_refused(ask(), *says)
        assert office.state() == before
